package app

import "fmt"

// variables warns of names that stand for nothing, and of what functions assign to and must not.
func (l *loader) variables() {
	all := map[string][]use{}
	assigned := map[string]bool{}
	for name, c := range l.app.chunks {
		all[name] = uses(c)
		for _, u := range all[name] {
			if u.assigned && u.stands == global {
				assigned[u.name] = true
			}
		}
	}
	for file, list := range all {
		for _, u := range list {
			if text := l.oddity(u, assigned); text != "" {
				l.warnings = append(l.warnings, Mistake{file, u.line, text})
			}
		}
	}
}

// oddity says what is wrong with the use of a variable, given the globals that are assigned anywhere.
//
// A local of a file's top level is a constant to functions: an object has a VM of its own, and at the gateway one VM
// serves many requests in turn, so that what a function writes there is seen by some later calls and not by others.
func (l *loader) oddity(u use, assigned map[string]bool) string {
	switch {
	case u.assigned && u.inside && u.stands == topLevel:
		return fmt.Sprintf("a function assigns to %s, a local of the top level: it is a constant there, keep what changes in an object", u.name)
	case u.assigned && u.inside && u.stands == global:
		return fmt.Sprintf("a function assigns to the global %s: globals are read-only once the app has loaded, write local", u.name)
	case u.stands != global || u.assigned || assigned[u.name]:
		return ""
	case !l.in.VM.Defines(u.name, ""):
		return fmt.Sprintf("%s is not defined: there is no global of that name, and no local in sight", u.name)
	case u.member != "" && !l.in.VM.Defines(u.name, u.member):
		return fmt.Sprintf("%s.%s is not defined: the library has nothing of that name", u.name, u.member)
	}
	return ""
}
