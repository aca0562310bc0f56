// Package lualib is the library that app code has beside Lua's own: json, uuid, log and sql. Its functions reach
// nothing outside the process; they are installed into an app's VM and belong to it.
package lualib
