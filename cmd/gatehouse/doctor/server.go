package doctor

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"time"

	"gatehouse/core"
	"gatehouse/core/nodes"
	"gatehouse/core/sealed/columns"
	"gatehouse/core/store/postgres"
)

// serverTime is for a database on a server to answer.
const serverTime = 15 * time.Second

// checkServer connects to a database on a server, and changes nothing.
func checkServer(ctx context.Context, p Subject) []Finding {
	ctx, cancel := context.WithTimeout(ctx, serverTime)
	defer cancel()
	address := p.Config.DatabasePath()
	found, err := postgres.Look(ctx, address, p.Config.DatabasePassword.Reveal(), columns.InUse)
	c := Finding{Name: "database", State: Fail}
	switch {
	case core.KindOf(err) == core.Invalid:
		c.Text, c.Fix = address+": "+core.TextOf(err), "see docs/postgresql.md"
	case err != nil:
		c.Text = address + " cannot be reached: " + err.Error()
		c.Fix = "check that the server runs and takes connections from here, GATEHOUSE_DATABASE_URL and GATEHOUSE_DATABASE_PASSWORD_FILE"
	case found.Version == 0:
		c.State, c.Text = OK, fmt.Sprintf("%s, PostgreSQL %s; its tables will be made at the first start", address, found.Server)
	default:
		c.State, c.Text = OK, fmt.Sprintf("%s, PostgreSQL %s, version %d", address, found.Server, found.Version)
		if p.Newest > found.Version {
			c.Text += fmt.Sprintf("; the next start brings it to version %d and keeps no copy: make one first (docs/postgresql.md)", p.Newest)
		}
	}
	all := []Finding{c}
	if err == nil && found.Version > 0 {
		all = append(all, checkContentKey(p, found.Metadata[columns.InUse])...)
		all = append(all, gateways(ctx, p, found.Version)...)
	}
	if open(address) {
		all = append(all, Finding{"database", Warn, "the connection to " + address + " may be without encryption, or with a server that is not checked",
			"add sslmode=verify-full to GATEHOUSE_DATABASE_URL (sslrootcert=FILE for a certificate authority of your own)"})
	}
	return all
}

// gateways reports which gateways serve and stand by on a database on a server, which has
// that version.
func gateways(ctx context.Context, p Subject, version int64) (found []Finding) {
	db, err := postgres.Open(p.Config.DatabasePath(), p.Config.DatabasePassword.Reveal(), true, 1)
	if err != nil {
		return nil
	}
	defer db.Close()
	all, err := nodes.Look(ctx, db)
	if err != nil {
		return []Finding{{"gateways", Warn, "they cannot be listed: " + err.Error(), "look at the database"}}
	}
	for _, n := range all {
		c := Finding{Name: "gateways", State: OK, Text: n.ID + " serves, version " + n.Version}
		switch {
		case n.State == nodes.Gone:
			c.State, c.Text, c.Fix = Warn, n.ID+" was heard last "+n.Silent.Round(time.Second).String()+" ago, and was not stopped", "start it again; otherwise it is listed for a day"
		case n.Outdated(version):
			c.State, c.Text, c.Fix = Warn, n.ID+" cannot take over: its program, version "+n.Version+", is older than the database", "update it"
		case n.State == nodes.Standby:
			c.Text = n.ID + " stands by, version " + n.Version
		}
		found = append(found, c)
	}
	return found
}

// open reports whether the connection leaves the machine without a check of the server.
func open(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	q := u.Query()
	host := u.Hostname()
	if q.Get("host") != "" {
		host = q.Get("host")
	}
	ip := net.ParseIP(host)
	local := host == "" || host == "localhost" || host[0] == '/' || ip != nil && ip.IsLoopback()
	return !local && q.Get("sslmode") != "verify-full"
}
