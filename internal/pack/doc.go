// Package pack is the format of packs: objects that an engine stores together, as a head
// without most of their data and a body with it. It belongs to no engine, and knows
// neither files nor transactions.
package pack
