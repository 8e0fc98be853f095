package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/safefile"
)

// A folder may come from somebody else. tract records what the user trusts beside the user's
// settings: folders that others own or can write, and settings files with their content.

// userSettings returns the user's settings file; its path is empty without a home directory.
func userSettings() settings.File { return settings.File{Path: settings.GlobalFile(os.LookupEnv)} }

func userTrust() settings.Trust { return settings.TrustBeside(userSettings().Path) }

// userSettingsOfStore returns the section of the user's settings file for this store.
func (p *storeLocation) userSettingsOfStore() settings.File {
	f := userSettings()
	f.Store = settings.Resolve(p.root)
	return f
}

// settingsFile returns the settings file of the store's folder; its path is empty without a folder.
func (p *storeLocation) settingsFile() settings.File {
	if p.root == "" {
		return settings.File{}
	}
	return settings.File{Path: filepath.Join(p.root, "config.toml"), Folder: true, Files: p.files, Trust: userTrust()}
}

// policyOfTrustedFolder returns whose files are accepted in a folder; the zero policy if root is
// empty. It refuses an untrusted folder that others own or can write.
func policyOfTrustedFolder(root string) (safefile.Policy, error) {
	if root == "" {
		return safefile.Policy{}, nil
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return safefile.Policy{}, err
	}
	policy := safefile.Policy{Owner: sudoUIDOrZero(), Root: root}
	info, err := os.Stat(root)
	if err != nil {
		return policy, nil //nolint:nilerr // what opens the store says so
	}
	if policy.Any = userTrust().Has(root, folderOwnerRecord(info)); policy.Any {
		return policy, nil
	}
	if link, err := os.Lstat(root); err == nil && link.Mode()&fs.ModeSymlink != 0 {
		if err := policy.Check(root, link); err != nil {
			return policy, err
		}
	}
	return policy, policy.Check(root, info)
}

// sudoUIDOrZero returns the id of the user who ran sudo, whose folders root trusts as git does; 0 if
// there is none.
func sudoUIDOrZero() int {
	if os.Geteuid() != 0 {
		return 0
	}
	uid, err := strconv.Atoi(os.Getenv("SUDO_UID"))
	if err != nil || uid < 0 {
		return 0
	}
	return uid
}

func folderOwnerRecord(info fs.FileInfo) []byte {
	uid, known := safefile.Owner(info)
	if !known {
		return []byte("folder")
	}
	return fmt.Appendf(nil, "folder of user %d", uid)
}

// reportIgnored prints the ignored settings of a file, up to a limit.
func (a *app) reportIgnored(path string, ignored []settings.Item) {
	const most = 5
	if len(ignored) == 0 {
		return
	}
	var names []string
	for _, i := range ignored[:min(len(ignored), most)] {
		name := i.Key.Name
		if _, err := settings.Find(name); err != nil {
			if unknown := (*settings.UnknownError)(nil); errors.As(err, &unknown) && unknown.Nearest != "" {
				name += " (did you mean " + unknown.Nearest + "?)"
			}
		}
		names = append(names, name)
	}
	list := strings.Join(names, ", ")
	if more := len(ignored) - most; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	a.info("ignored in %s, which is not trusted: %s (tract config trust accepts the file as it is)", path, list)
}

type trustOptions struct {
	folder         string
	revoke, dryRun bool
}

// trustJSON is a file or a folder that was trusted, or whose trust was withdrawn.
type trustJSON struct {
	Path     string        `json:"path"`
	Trusted  bool          `json:"trusted"`
	Settings []settingJSON `json:"settings,omitempty"` // that count only because of it
}

func (a *app) configTrust(o *trustOptions) error {
	var list []trustJSON
	var err error
	if o.folder != "" {
		list, err = a.trustFolder(o)
	} else {
		list, err = a.trustFiles(o)
	}
	switch {
	case err != nil:
		return err
	case a.json:
		return format.Encode(a.out, list)
	}
	verb := "trusted"
	switch {
	case o.dryRun:
		verb = "would be trusted"
	case o.revoke:
		verb = "no longer trusted"
	}
	for _, t := range list {
		a.info("%s: %s", verb, t.Path)
	}
	if len(list) == 0 {
		a.info("nothing to change")
	}
	return nil
}

// trustFolder trusts a folder that others own or can write.
func (a *app) trustFolder(o *trustOptions) ([]trustJSON, error) {
	root := storeFolderOf(o.folder)
	info, err := os.Stat(root)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a folder", root)
	}
	if err != nil && !o.revoke {
		return nil, withHint(fmt.Errorf("trust a folder: %w", err), "give the folder %s, or its parent", shellQuote(folder))
	}
	t := trustJSON{Path: settings.Resolve(root), Trusted: !o.revoke}
	if o.revoke {
		return revokeTrust(t)
	}
	if !a.json {
		why := "only you can write it"
		if e := (*safefile.Error)(nil); errors.As(safefile.Policy{Owner: sudoUIDOrZero()}.Check(t.Path, info), &e) {
			why = e.Why
		}
		p := a.printer()
		p.Line(fmt.Sprintf("%s\t%v\t%s", t.Path, info.Mode(), why))
		if err := p.Err(); err != nil {
			return nil, err
		}
	}
	if o.dryRun {
		return []trustJSON{t}, nil
	}
	return []trustJSON{t}, userTrust().Add(root, folderOwnerRecord(info))
}

// revokeTrust withdraws the trust in a file or a folder.
func revokeTrust(t trustJSON) ([]trustJSON, error) {
	was, err := userTrust().Remove(t.Path)
	if err != nil || !was {
		return nil, err
	}
	return []trustJSON{t}, nil
}

// trustFiles shows the unsafe settings of the store's folder and trusts exactly the bytes that
// it read.
func (a *app) trustFiles(o *trustOptions) ([]trustJSON, error) {
	p, err := a.findStore()
	if err != nil {
		return nil, err
	}
	if p.root == "" {
		return nil, withHint(fmt.Errorf("trust settings: store %s has no folder", p.displayName()), "name the folder with --dir")
	}
	profiles, err := p.settingsFile().Profiles()
	if err != nil {
		return nil, err
	}
	var list []trustJSON
	for _, f := range append([]settings.File{p.settingsFile()}, profiles...) {
		t, err := a.trustFile(o, f)
		if err != nil {
			return list, err
		}
		list = append(list, t...)
	}
	return list, nil
}

// trustFile accepts one file of settings, if it sets anything that is not safe.
func (a *app) trustFile(o *trustOptions, f settings.File) ([]trustJSON, error) {
	t := trustJSON{Path: f.Path, Trusted: !o.revoke}
	if o.revoke {
		return revokeTrust(t)
	}
	c, err := f.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, withSettingHint(err)
	}
	unsafe := c.Unsafe()
	if c.Trusted || len(unsafe) == 0 {
		return nil, nil
	}
	if err := f.Accept(c, o.dryRun); err != nil {
		return nil, withSettingHint(err)
	}
	p := a.printer()
	for _, i := range unsafe {
		t.Settings = append(t.Settings, settingJSON{Key: i.Key.Name, Value: i.Value, Origin: f.Path})
		if !a.json {
			p.Line(i.Key.Name + " = " + i.Value) // whole, however wide
		}
	}
	return []trustJSON{t}, p.Err()
}

// shellQuote quotes an argument for a POSIX shell, on one printable line.
func shellQuote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+,:@%", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	if format.Line(s) != s || strings.Contains(s, "\t") {
		var b strings.Builder
		for _, c := range []byte(s) {
			if c < ' ' || c >= 0x7f || c == '\'' || c == '\\' {
				fmt.Fprintf(&b, `\%03o`, c)
			} else {
				b.WriteByte(c)
			}
		}
		return "$'" + b.String() + "'"
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
