// Package notify tells other systems what happens to decisions, while this server leads.
//
// What is told comes from the history: the changes of decisions, and the notices that are recorded
// with the statuses that show them. Each notification follows it from a cursor of its own, which is
// in its status. The cursor moves when something has been delivered. So after a crash or a change of
// leader, delivery goes on where it was, and what was delivered since the cursor was last written is
// delivered again, with the same ID.
//
// A notification sends one thing after the other, in the order of the history, and so in order for
// each object. What the destination refuses is set aside, in the status as well: it is tried again,
// and what comes after it for the same object is read from the history when it has been accepted.
//
// A notification whose destination does not answer waits by itself: what it has to send stays in the
// history, and other notifications have their own goroutines.
package notify
