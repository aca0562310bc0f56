// Package app loads an app: the folder with main.lua, its modules, migrations and files. Loading runs main.lua once
// and finds every mistake in its declarations, with file and line; an App is what that gives, immutable and shared.
//
// An Instance is the app loaded into one VM: the functions that classes, connections and on "fetch" declared. It
// belongs to one user at a time. What its code may call of the outside it gets from the library functions given in
// Options and from the Caller set on it.
package app
