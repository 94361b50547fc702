package permissions

import "github.com/berth-dev/berth/core/domain"

// Options are the answers offered for a call. "Always" answers are left out
// when the ruling forbids remembering; their names say what they cover.
func Options(a domain.Access, r domain.Ruling) []domain.PermissionOption {
	options := []domain.PermissionOption{{ID: "allow-once", Name: "Allow once", Kind: domain.AllowOnce}}
	if r.Rememberable {
		options = append(options, domain.PermissionOption{
			ID: "allow-always", Name: "Always allow " + a.Tool + " in " + a.Scope + " in this session", Kind: domain.AllowAlways,
		})
	}
	options = append(options, domain.PermissionOption{ID: "reject-once", Name: "Reject", Kind: domain.RejectOnce})
	if r.Rememberable {
		options = append(options, domain.PermissionOption{
			ID: "reject-always", Name: "Never allow " + a.Tool + " in " + a.Scope + " in this session", Kind: domain.RejectAlways,
		})
	}
	return options
}

// kindOf finds the kind of an offered option.
func kindOf(id string, options []domain.PermissionOption) (domain.OptionKind, bool) {
	for _, o := range options {
		if o.ID == id {
			return o.Kind, true
		}
	}
	return "", false
}
