package core

// A Role is what a user is to the gateway. The zero value is a user that is
// not known.
type Role string

const (
	RoleOwner Role = "owner"
	RoleAdmin Role = "admin"
	RoleGuest Role = "guest"
)

// Manages reports whether the role may use the commands of the operator.
func (r Role) Manages() bool { return r == RoleOwner || r == RoleAdmin }
