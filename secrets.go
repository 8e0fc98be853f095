package tract

import (
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/llm"
)

// Secret is a secret that was found in what was about to be committed.
type Secret struct {
	Rule   string       // the rule that found the secret, such as "anthropic"
	Kind   content.Kind // of the block; 0: the secret was in the definition of a tool
	Masked bool         // a mask is stored; otherwise the secret is
	Sealed bool         // the secret is stored because a seal covers it: the provider would refuse changed text
}

const maskSetting = "secrets.mask"

// maskAndReportDrafts returns drafts with their secrets masked, and calls OnSecrets with the secrets.
func (c *callOptions) maskAndReportDrafts(drafts []commit.Draft) []commit.Draft {
	m := c.newMasker()
	drafts = m.Drafts(drafts)
	c.callOnSecrets(m.found)
	return drafts
}

// callOnSecrets calls OnSecrets.
func (c *callOptions) callOnSecrets(found []Secret) {
	if c.onSecrets != nil && len(found) > 0 {
		c.onSecrets(found)
	}
}

// reportingMasker masks secrets and remembers what it found.
type reportingMasker struct {
	history.Masker
	found []Secret
}

// newMasker returns a masker with the settings of the call.
func (c *callOptions) newMasker() *reportingMasker {
	m := &reportingMasker{}
	m.Masker = history.Masker{
		Mode: c.settings.Text(maskSetting), External: c.external,
		Found: func(rule string, kind content.Kind, masked, sealed bool) {
			m.found = append(m.found, Secret{Rule: rule, Kind: kind, Masked: masked, Sealed: sealed})
		},
	}
	return m
}

// maskAndReportTools returns the definitions of tools with their secrets masked, as they are sent
// and stored, and calls OnSecrets with the secrets.
func (c *callOptions) maskAndReportTools(tools []llm.Tool) []llm.Tool {
	m := c.newMasker()
	tools = m.Tools(tools)
	c.callOnSecrets(m.found)
	return tools
}
