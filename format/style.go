package format

import "github.com/fatih/color"

// style is a color and other attributes of printed text.
type style = *color.Color

// styles are the styles of one printer, independent of the global state of package color.
type styles struct {
	plain, id, ref, head, dim, accent, warn style
	added, removed, changed                 style
	system, user, assistant, tool           style
	reasoning, tag                          style
	shaded                                  bool // reasoning has a background color
}

// The background colors of reasoning, one step from the terminal's background, of the 256 colors.
const (
	shadeOnDark  = 236
	shadeOnLight = 254
)

func newStyles(o Options) *styles {
	mix := func(attributes ...color.Attribute) style {
		c := color.New(attributes...)
		if o.Color {
			c.EnableColor()
		} else {
			c.DisableColor()
		}
		return c
	}
	var shade []color.Attribute
	switch o.Background {
	case Dark:
		shade = []color.Attribute{48, 5, shadeOnDark}
	case Light:
		shade = []color.Attribute{48, 5, shadeOnLight}
	}
	plain := color.New()
	plain.DisableColor()
	return &styles{
		plain: plain, id: mix(color.FgYellow), ref: mix(color.FgCyan, color.Bold), head: mix(color.Bold),
		dim: mix(color.Faint), accent: mix(color.FgGreen, color.Bold), warn: mix(color.FgYellow, color.Bold),
		added: mix(color.FgGreen), removed: mix(color.FgRed), changed: mix(color.FgYellow),
		system: mix(color.FgMagenta, color.Bold), user: mix(color.FgCyan, color.Bold),
		assistant: mix(color.FgGreen, color.Bold), tool: mix(color.FgBlue, color.Bold),
		reasoning: mix(append(shade, color.Faint, color.Italic)...), tag: mix(append(shade, color.Faint)...),
		shaded: o.Color && len(shade) > 0,
	}
}

// colorize prints text in a style.
func colorize(s style, text string) string {
	if text == "" {
		return ""
	}
	return s.Sprint(text)
}
