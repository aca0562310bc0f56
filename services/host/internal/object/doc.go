// Package object runs objects: each has a queue, one turn at a time, a VM, a SQLite file, and an ordered way out.
//
// A turn is one transaction: begin, migrations and init if the object is new, the app's code, commit. The next turn
// runs while the commit of the last one is being made durable, but nothing leaves the object (an answer, an event, a
// receipt, a call that a later turn makes) before every commit that it may have seen is: outbound sees to that. A
// turn that fails is rolled back, and its VM thrown away, so that memory never disagrees with the file.
//
// An object has no goroutine while it has nothing to do. Its queue takes calls, follows and deliveries in the order
// of their arrival; receipts, answers and what the relay asks for have a lane of their own between them.
//
// A Registry is safe for concurrent use. What belongs to an activation (the file, the VM, cursors) is touched by the
// turn alone.
package object
