package block

// Codes of resources.
const (
	codeParents  = 0 // that of the parent, which is a row before
	codeNew      = 1 // the next of the new ones
	codeResource = 2 // 2+i: the i-th new one of the shape's team
)

// teams are the resources of a block, so far: those of the rows of one service of a tenant are a team. Only names that the shapes have are
// used for it, so that no rule about what a resource is called is part of the format.
type teams struct {
	members [][]uint32 // by team, in the order in which they came
}

func (t *teams) reset(n int) {
	for i := range t.members {
		t.members[i] = t.members[i][:0]
	}
	for len(t.members) < n {
		t.members = append(t.members, nil)
	}
}

// roster finds resources in their teams.
type roster struct {
	teams
	where []member // by resource
}

// member is where a resource is: the last team that it joined. In an earlier block it may have been there, too, so the team is asked.
type member struct{ team, index uint32 }

// code returns the code of a resource, which is new or not of the parent.
func (r *roster) code(team, resource uint32) uint32 {
	at, all := &r.where[resource], r.members[team]
	if at.team == team && int(at.index) < len(all) && all[at.index] == resource {
		return codeResource + at.index
	}
	*at = member{team, uint32(len(all))}
	r.members[team] = append(all, resource)
	return codeNew
}

// encodeResources writes the resources. The parents are known.
func (e *Encoder) encodeResources() {
	e.roster.reset(e.l.teams)
	e.roster.where = resize(e.roster.where, len(e.l.tables.Resources))
	e.newcomers = e.newcomers[:0]
	for i, p := range e.kin.parents {
		h := &e.heads[i]
		if p >= 0 && int(p) < i && e.heads[p].Resource == h.Resource {
			e.codes[i] = codeParents
			continue
		}
		e.codes[i] = e.roster.code(e.l.shapes[h.Shape].team, h.Resource)
		if e.codes[i] == codeNew {
			e.newcomers = append(e.newcomers, h.Resource)
		}
	}
	e.code(partResources, e.codes)
	e.code(partNew, e.newcomers)
}

// decodeResources reads the resources. Shapes and parents are decoded.
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
	h.newcomers = resize(h.newcomers, n)
	if err := b.decodeCodes(partNew, h.newcomers); err != nil {
		return err
	}
	if err := checkCodes(h.newcomers, len(b.l.tables.Resources), "resource"); err != nil {
		return err
	}
	return b.joinTeams(h.newcomers)
}

func (b *Block) joinTeams(newcomers []uint32) error {
	h := &b.heads
	h.teams.reset(b.l.teams)
	h.resources = resize(h.resources, b.dir.rows)
	for i, code := range h.codes {
		team := &h.teams.members[b.l.shapes[h.shapes[i]].team]
		switch p := h.parents[i]; {
		case code == codeNew:
			h.resources[i] = newcomers[0]
			*team, newcomers = append(*team, newcomers[0]), newcomers[1:]
		case code >= codeResource && int64(code-codeResource) < int64(len(*team)):
			h.resources[i] = (*team)[code-codeResource]
		case code == codeParents && p >= 0 && int(p) < i:
			h.resources[i] = h.resources[p]
		default:
			return corrupt("row %d has a resource that was not before", i)
		}
	}
	return nil
}
