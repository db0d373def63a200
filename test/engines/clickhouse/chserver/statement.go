package main

import (
	"regexp"
	"strings"
)

var (
	leading    = regexp.MustCompile(`^(?s:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)+`)
	insertInto = regexp.MustCompile(`(?i)^INSERT\s+INTO\b`)
	tailFormat = regexp.MustCompile(`(?i)\bFORMAT\s+(\w+)\s*;?\s*$`)
	tailValues = regexp.MustCompile(`(?i)\bVALUES\s*;?\s*$`)
	anyFormat  = regexp.MustCompile(`(?i)\bFORMAT\s+(\w+)(?:\s+SETTINGS\b[^()]*)?\s*;?\s*$`)
)

// insertHead returns an INSERT whose rows follow outside of the statement, without its format, and
// the format. Of other statements it returns "".
func insertHead(statement string) (head, format string) {
	body := leading.ReplaceAllString(statement, "")
	if !insertInto.MatchString(body) {
		return "", ""
	}
	if m := tailFormat.FindStringSubmatchIndex(body); m != nil {
		return strings.TrimSpace(body[:m[0]]), body[m[2]:m[3]]
	}
	if m := tailValues.FindStringIndex(body); m != nil {
		return strings.TrimSpace(body[:m[0]]), "Values"
	}
	return "", ""
}

// outputFormat returns the format that a statement asks for, or the default.
func outputFormat(statement, defaultFormat string) string {
	if m := anyFormat.FindStringSubmatch(statement); m != nil {
		return m[1]
	}
	return defaultFormat
}
