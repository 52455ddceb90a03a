package setup

import "testing"

func TestPasswordsThatAreEasyToGuessAreRefused(t *testing.T) {
	for _, bad := range []string{"short", "aaaaaaaaaaaaaaaa", "passwordpassword", "Gatehouse-Admin-1", "123456123456123456", "abababababababab"} {
		if weak(bad) == "" {
			t.Errorf("%q counts as good", bad)
		}
	}
	for _, good := range []string{"topsecret zebra lamp river", "correct horse battery", "zwölf Bären am Fluß"} {
		if fault := weak(good); fault != "" {
			t.Errorf("%q %s", good, fault)
		}
	}
}
