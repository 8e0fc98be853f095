package wire

import "testing"

// TestSameFamilyOnBedrock: the same model in another region, or at its maker's, is
// of the family; another maker's in the same region is not.
func TestSameFamilyOnBedrock(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"us.anthropic.claude-sonnet-4-5-v1:0", "eu.anthropic.claude-opus-4-6-v1:0", true},
		{"us.anthropic.claude-sonnet-4-5-v1:0", "claude-opus-4-6", true},
		{"arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-x", "anthropic.claude-y", true},
		{"us.anthropic.claude-sonnet-4-5-v1:0", "us.deepseek.r1-v1:0", false},
		{"us.anthropic.claude-sonnet-4-5-v1:0", "us.amazon.nova-2-lite-v1:0", false},
		{"gpt-4.1.mini", "gpt-5", true},
	} {
		if have := sameFamily(c.a, c.b); have != c.want || sameFamily(c.b, c.a) != c.want {
			t.Errorf("%s and %s: %t", c.a, c.b, have)
		}
	}
}
