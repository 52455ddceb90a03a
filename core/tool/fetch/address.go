package fetch

import (
	"net"
	"net/netip"
	"slices"
)

// closed are the addresses that are no public unicast: IANA's special-purpose registries
// (RFC 6890 and its updates, https://www.iana.org/assignments/iana-ipv4-special-registry
// and …/iana-ipv6-special-registry), multicast, and the address at which one cloud
// serves its machines' secrets outside of them.
var closed = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
	"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"168.63.129.16/32", // Azure: https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
	// Within 2000::/3; all else of IPv6 is closed as it is, NAT64 (64:ff9b::/96), unique
	// local and link local too.
	"2001::/23",     // protocol assignments, Teredo
	"2001:db8::/32", // documentation
	"2002::/16",     // 6to4: an IPv4 address in disguise
	"2620:4f:8000::/48", "3fff::/20",
)

var global6 = netip.MustParsePrefix("2000::/3")

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// public reports whether a is an address of the open internet, in whatever
// spelling, and none of this machine's own.
func public(a netip.Addr, own []netip.Addr) bool {
	if a.Zone() != "" {
		return false
	}
	a = a.Unmap() // ::ffff:127.0.0.1 is 127.0.0.1
	if a.Is6() && (!global6.Contains(a) || isatap(a)) {
		return false
	}
	return !slices.ContainsFunc(closed, func(p netip.Prefix) bool { return p.Contains(a) }) && !slices.Contains(own, a)
}

// isatap: RFC 5214 inserts an IPv4 address behind 0000:5efe or 0200:5efe.
func isatap(a netip.Addr) bool {
	b := a.As16()
	return b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}

// ownAddresses returns those of this machine's interfaces: what listens there is
// meant for others or for no one. Where they cannot be distinguished, none.
func ownAddresses() []netip.Addr {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var own []netip.Addr
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			own = append(own, p.Addr().Unmap())
		}
	}
	return own
}
