package mcphybrid

import (
	"cmp"
	"context"
	"errors"

	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/login"
)

// Login lets the user log in to a server of [Manager.Start] or [Manager.AddServer] by
// OAuth, and then connects it. Tools that are active stay so. It finds the
// authorization server, registers a client if need be, shows a page by
// [Options.OpenURL] and waits for the browser until ctx ends, or the server is removed. The tokens go to
// [Options.TokenStore] and are refreshed until the authorization server refuses that;
// then the server is [StateUnauthorized] again. Errors have no secrets.
//
// With [config.ClientCredentials], nobody needs to log in. Login asks for another token
// then, at once and without a page.
func (m *Manager) Login(ctx context.Context, server string) error {
	src, err := m.begunServer(server)
	switch {
	case err != nil:
	case src.account == nil:
		err = errors.New("it has no URL")
	case m.opts.OpenURL == nil && !src.account.SignsInItself():
		err = errors.New("Options.OpenURL is not set")
	default:
		_ = src.server.Connect(ctx) // the refusal tells where to log in
		open := m.opts.OpenURL
		err = src.account.Login(ctx, func(ctx context.Context, page login.Page) (string, error) {
			return hostcode.Call("Options.OpenURL", func() (string, error) {
				return open(ctx, LoginPage{m.user.id, server, page.URL, page.Issuer, page.TokenHost})
			})
		})
		if unsaved := new(login.UnsavedError); err == nil || errors.As(err, &unsaved) {
			err = cmp.Or(src.server.Again(ctx), err)
		}
		err = src.server.Hide(err)
	}
	return prefixed(err, "login to server %q: ", server)
}

// Logout ends the login to a server: it deletes the tokens from [Options.TokenStore],
// closes the connection, and asks the authorization server to revoke the tokens, if it
// told [Manager.Login] how and tells the same now. The server is [StateUnauthorized]
// then, unless it was not connected or works without a login. Its tools stay. If the
// revocation fails, the tokens are deleted all the same. It is no error if nobody was
// logged in.
//
// Nothing else ends a login: not [Manager.RemoveServer], [Manager.DropUser] or
// [Manager.Close], since the server or the user may come back.
func (m *Manager) Logout(ctx context.Context, server string) error {
	_, src := m.serverOf(m.owner, server)
	var err error
	switch {
	case src == nil:
		err = errors.New("there is no such server")
	case src.account == nil:
		err = errors.New("it has no URL")
	default:
		err = src.server.Hide(src.account.Logout(ctx, func() error { return src.server.LoggedOut(ctx) }))
	}
	return prefixed(err, "logout from server %q: ", server)
}
