package tract

import (
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// Secret is one that was found in what was about to be committed.
type Secret struct {
	Rule   string       // that found it, such as "anthropic"
	Kind   content.Kind // of the block that it was in, or beside; 0: the definition of a tool
	Masked bool         // a mask is stored; else the secret is, as it came
	Sealed bool         // it is stored because a seal covers it: the provider would refuse other words
}

const maskSetting = "secrets.mask"

// commits makes the commits of drafts as commit.Write does.
func (c *call) commits(parent *commit.Commit, drafts ...commit.Draft) (commits []*commit.Commit, put []objects.Object, err error) {
	var w commit.Writer
	commits, err = c.write(&w, parent, drafts...)
	return commits, w.Objects(), err
}

// write makes the commits of drafts with a writer.
func (c *call) write(w *commit.Writer, parent *commit.Commit, drafts ...commit.Draft) ([]*commit.Commit, error) {
	commits := make([]*commit.Commit, len(drafts))
	for i, d := range c.masked(drafts) {
		made, err := w.Write(parent, &d)
		if err != nil {
			return nil, err
		}
		commits[i], parent = made, made
	}
	return commits, nil
}

// masked returns drafts as they are committed. Every draft goes through it.
func (c *call) masked(drafts []commit.Draft) []commit.Draft {
	m := c.masking()
	drafts = m.Drafts(drafts)
	c.tell(m.found)
	return drafts
}

func (c *call) tell(found []Secret) {
	if c.found != nil && len(found) > 0 {
		c.found(found)
	}
}

// masking masks secrets, and keeps what was found.
type masking struct {
	history.Masker
	found []Secret
}

func (c *call) masking() *masking {
	m := &masking{}
	m.Masker = history.Masker{
		Mode: c.settings.Text(maskSetting), Brought: c.foreign,
		Found: func(rule string, kind content.Kind, masked, sealed bool) {
			m.found = append(m.found, Secret{Rule: rule, Kind: kind, Masked: masked, Sealed: sealed})
		},
	}
	return m
}

// maskedTools returns the definitions of tools as they are sent and stored.
func (c *call) maskedTools(list []llm.Tool) []llm.Tool {
	m := c.masking()
	list = m.Tools(list)
	c.tell(m.found)
	return list
}
