package block

// Codes of resources.
const (
	codeParents  = 0 // resource of the parent, which is an earlier row
	codeNew      = 1 // the next new resource
	codeResource = 2 // 2+i: the i-th new resource of the shape's service
)

// serviceResources lists the resources of the rows so far, by service. It uses the services of the
// shapes, so that the format does not depend on how the service of a resource is determined.
type serviceResources struct {
	lists [][]uint32 // by service, in the order of first occurrence
}

func (t *serviceResources) reset(n int) {
	for i := range t.lists {
		t.lists[i] = t.lists[i][:0]
	}
	for len(t.lists) < n {
		t.lists = append(t.lists, nil)
	}
}

// resourceCoder assigns codes to resources.
type resourceCoder struct {
	seen  serviceResources
	where []resourcePlace // by resource
}

// resourcePlace is the position of a resource in the list of its last service. It may stem from an
// earlier block, so the list must be checked.
type resourcePlace struct{ service, index uint32 }

// code returns the code of a resource that is not inherited from the parent.
func (r *resourceCoder) code(service, resource uint32) uint32 {
	at, all := &r.where[resource], r.seen.lists[service]
	if at.service == service && int(at.index) < len(all) && all[at.index] == resource {
		return codeResource + at.index
	}
	*at = resourcePlace{service, uint32(len(all))}
	r.seen.lists[service] = append(all, resource)
	return codeNew
}

// encodeResources writes the resources. Parents must be resolved.
func (e *Encoder) encodeResources() {
	e.resources.seen.reset(e.l.services)
	e.resources.where = resize(e.resources.where, len(e.l.tables.Resources))
	e.newResources = e.newResources[:0]
	for i, p := range e.parents.parents {
		h := &e.heads[i]
		if p >= 0 && int(p) < i && e.heads[p].Resource == h.Resource {
			e.codes[i] = codeParents
			continue
		}
		e.codes[i] = e.resources.code(e.l.shapes[h.Shape].service, h.Resource)
		if e.codes[i] == codeNew {
			e.newResources = append(e.newResources, h.Resource)
		}
	}
	e.code(partResources, e.codes)
	e.code(partNew, e.newResources)
}

// decodeResources decodes the resources. Shapes and parents must be decoded.
func (b *Block) decodeResources() error {
	h := &b.heads
	h.codes = resize(h.codes, b.dir.rows)
	if err := b.decodeCodes(partResources, h.codes); err != nil {
		return err
	}
	n := 0
	for _, code := range h.codes {
		if code == codeNew {
			n++
		}
	}
	h.newResources = resize(h.newResources, n)
	if err := b.decodeCodes(partNew, h.newResources); err != nil {
		return err
	}
	if err := checkCodes(h.newResources, len(b.l.tables.Resources), "resource"); err != nil {
		return err
	}
	return b.assignResources(h.newResources)
}

func (b *Block) assignResources(newResources []uint32) error {
	h := &b.heads
	h.byService.reset(b.l.services)
	h.resources = resize(h.resources, b.dir.rows)
	for i, code := range h.codes {
		list := &h.byService.lists[b.l.shapes[h.shapes[i]].service]
		switch p := h.parents[i]; {
		case code == codeNew:
			h.resources[i] = newResources[0]
			*list, newResources = append(*list, newResources[0]), newResources[1:]
		case code >= codeResource && int64(code-codeResource) < int64(len(*list)):
			h.resources[i] = (*list)[code-codeResource]
		case code == codeParents && p >= 0 && int(p) < i:
			h.resources[i] = h.resources[p]
		default:
			return corrupt("row %d has an invalid resource code", i)
		}
	}
	return nil
}
