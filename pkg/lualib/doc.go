// Package lualib is the library that app code has beside Lua's own: json, uuid, log, sql, jwt, crypto, base64, hex and
// url. It is installed into an app's VM with [Open] and belongs to it; nothing in it reaches outside the process.
//
// # Rules of its functions
//
//   - A mistake of the app (a wrong type, no algorithm named, a key that cannot be one) raises an error that names the
//     function, what is wrong and what to do. Bad input from outside (a forged token, broken base64) gives nil and a
//     reason, or false and a reason from crypto.password_verify.
//   - Keys and what is hashed may be a string or a secret. Everything else refuses a secret, and no error, reason or log
//     line holds a secret's or a key's text (HTTP-6).
//   - Arguments are taken as they are: a number is no string.
//   - Work is charged to the running call's meter before it is done, in proportion to the bytes or to the cost of the
//     cryptography; results are bounded like every string of the VM (BOX-3).
//
// # Tokens and passwords
//
// jwt.verify accepts one algorithm, the one its caller names, and a key of that algorithm's kind: what a token says of
// itself decides nothing. A token ends at the second of its exp and begins with its nbf, by time.Now.
// crypto.password_hash is argon2id in the PHC string format. At most two such computations run at once in the process;
// others wait as long as their call may run.
//
// # Concurrency
//
// A VM's functions are used by the goroutine that runs the VM. Open may be called once and its result used for many
// VMs concurrently.
package lualib
