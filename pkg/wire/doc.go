// Package wire is what the services say to one another: the subjects, the messages, the headers of an event and the
// errors. The services meet nowhere else. A message is JSON; values of the app inside it stay the JSON they are.
//
// Everything here is a plain value, safe to copy and to share once made.
package wire
