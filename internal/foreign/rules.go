package foreign

import (
	"slices"
	"strconv"
	"strings"
)

// rule says what happens to a key of a block, if the block has it. key is a path with dots.
type rule struct {
	key string
	do  action
}

// action changes the key at path, which is below block.
type action func(r *rewriter, block, path []string)

// drop leaves the key out.
func drop(reason string) action {
	return func(r *rewriter, _, path []string) { r.Drop(path, reason) }
}

// quietly leaves out a key that asks for what this program always does.
func quietly(r *rewriter, _, path []string) { r.Omit(path) }

// emptied leaves out a block without keys.
func emptied(r *rewriter, _, path []string) {
	if len(r.Keys(path...)) == 0 {
		r.Drop(path, "")
	}
}

// refuse reports a key that cannot be ignored.
func refuse(problem string) action {
	return func(r *rewriter, _, path []string) { r.Refuse(path, problem) }
}

// to moves the value to another key of the block, unless that key exists.
func to(key string) action {
	return func(r *rewriter, block, path []string) {
		if r.Has(at(block, key)...) {
			r.Drop(path, key+" has precedence")
			return
		}
		r.Move(path, at(block, key), "is called "+key+" here")
	}
}

// when applies an action if the value is one of values.
func when(do action, values ...string) action {
	return func(r *rewriter, block, path []string) {
		if slices.Contains(values, strings.ToLower(r.Text(path...))) {
			do(r, block, path)
		}
	}
}

// set sets the value.
func set(text, reason string) action {
	return func(r *rewriter, _, path []string) { r.Set(path, text, reason) }
}

// first applies actions until one changes something.
func first(actions ...action) action {
	return func(r *rewriter, block, path []string) {
		for _, do := range actions {
			if r.Has(path...) {
				do(r, block, path)
			}
		}
	}
}

// lower changes a word to lower case.
func lower(r *rewriter, _, path []string) {
	if text := r.Text(path...); text != strings.ToLower(text) {
		r.Set(path, strings.ToLower(text), "")
	}
}

// headers turns a list of names and values into a map. A list with names that cannot be keys stays,
// and is refused when the configuration is loaded.
func headers(r *rewriter, block, path []string) {
	if !r.Has(at(path, "0")...) {
		return
	}
	for i := 0; r.Has(at(path, itoa(i))...); i++ {
		if name := r.Text(at(path, itoa(i)+".name")...); name == "" || strings.Contains(name, "::") {
			return
		}
	}
	const list = "list of headers" // a name that no key has
	moved := append(slices.Clone(block), list)
	r.Move(path, moved, "")
	for i := 0; r.Has(at(moved, itoa(i))...); i++ {
		name := r.Text(at(moved, itoa(i)+".name")...)
		r.Copy(at(moved, itoa(i)+".value"), append(slices.Clone(path), name), "", "")
	}
	r.Drop(moved, "")
}

// atMost leaves out a number above the maximum that this program accepts.
func atMost(limit int, reason string) action {
	return func(r *rewriter, _, path []string) {
		if n, err := strconv.Atoi(r.Text(path...)); err == nil && n > limit {
			r.Drop(path, reason)
		}
	}
}

// below returns rules for the keys of an inner block.
func below(prefix string, rules []rule) []rule {
	out := make([]rule, len(rules))
	for i, r := range rules {
		out[i] = rule{prefix + "." + r.key, r.do}
	}
	return out
}

// apply applies rules to the block at path.
func (r *rewriter) apply(path []string, rules []rule) {
	for _, rule := range rules {
		if key := at(path, rule.key); r.Has(key...) {
			rule.do(r, path, key)
		}
	}
}

// applyRules applies the rules of all blocks.
func (r *rewriter) applyRules() {
	r.apply([]string{"service", "telemetry"}, telemetryRules)
	for _, b := range blocks {
		for _, id := range r.Keys(b.section) {
			if path := at([]string{b.section, id}, b.path); slices.Contains(b.types, TypeOf(id)) && r.Has(path...) {
				r.apply(path, b.rules)
			}
		}
	}
}
