package login

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// assertionLifetime is how long an assertion is good for. Clocks may differ.
const assertionLifetime = 5 * time.Minute

// assertion returns a JSON Web Token by which a client shows to an audience that it has
// the private key (RFC 7523, 2.2 and 3). known are the algorithms that the audience says
// it knows, if it does.
func assertion(key, keyID, client, audience string, known []string) (string, error) {
	signer, err := signerOf(key)
	if err != nil {
		return "", fmt.Errorf("OAuth.PrivateKey %w", err)
	}
	algorithm, hash := algorithmOf(signer, known)
	if algorithm == "" {
		return "", errors.New("OAuth.PrivateKey is of a kind that can't sign here: want RSA, P-256, P-384, P-521 or Ed25519")
	}
	header := map[string]string{"alg": algorithm, "typ": "JWT"}
	if keyID != "" {
		header["kid"] = keyID
	}
	now := time.Now()
	claims := map[string]any{
		"iss": client, "sub": client, "aud": audience, "jti": rand.Text(), "iat": now.Unix(), "exp": now.Add(assertionLifetime).Unix(),
	}
	encode := base64.RawURLEncoding.EncodeToString
	token := encode([]byte(text.JSON(header))) + "." + encode([]byte(text.JSON(claims)))
	signature, err := sign(signer, algorithm, hash, []byte(token))
	if err != nil {
		return "", fmt.Errorf("signing with OAuth.PrivateKey: %w", err)
	}
	return token + "." + encode(signature), nil
}

// signerOf returns the first private key in PEM. The error goes on after its name.
func signerOf(key string) (crypto.Signer, error) {
	for rest := []byte(key); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, errors.New("is not a private key in PEM")
		}
		var parsed any
		var err error
		switch block.Type {
		case "PRIVATE KEY":
			parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			parsed, err = x509.ParseECPrivateKey(block.Bytes)
		case "RSA PRIVATE KEY":
			parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		case "ENCRYPTED PRIVATE KEY":
			return nil, errors.New("is encrypted: decrypt it first")
		default: // such as EC PARAMETERS
			continue
		}
		signer, ok := parsed.(crypto.Signer)
		if err != nil || !ok { // the error may repeat what it could not read
			return nil, fmt.Errorf("is not a private key that can be read, in the block %q", text.Line(block.Type, maxSaid))
		}
		return signer, nil
	}
}

// algorithmOf returns the name of the algorithm by which a key signs (RFC 7518, 3.1), and
// its hash; "" if there is none.
func algorithmOf(key crypto.Signer, known []string) (name string, hash crypto.Hash) {
	switch key := key.(type) {
	case *rsa.PrivateKey:
		if !slices.Contains(known, "RS256") && slices.Contains(known, "PS256") {
			return "PS256", crypto.SHA256
		}
		return "RS256", crypto.SHA256
	case *ecdsa.PrivateKey:
		switch key.Curve.Params().BitSize {
		case 256:
			return "ES256", crypto.SHA256
		case 384:
			return "ES384", crypto.SHA384
		case 521:
			return "ES512", crypto.SHA512
		}
	case ed25519.PrivateKey:
		return "EdDSA", 0
	}
	return "", 0
}

// sign returns the signature in the form of a JSON Web Signature.
func sign(key crypto.Signer, algorithm string, hash crypto.Hash, message []byte) ([]byte, error) {
	digest := message
	if hash != 0 {
		h := hash.New()
		h.Write(message)
		digest = h.Sum(nil)
	}
	if strings.HasPrefix(algorithm, "PS") {
		return key.Sign(rand.Reader, digest, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: hash})
	}
	elliptic, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return key.Sign(rand.Reader, digest, hash)
	}
	r, s, err := ecdsa.Sign(rand.Reader, elliptic, digest)
	if err != nil {
		return nil, err
	}
	size := (elliptic.Curve.Params().BitSize + 7) / 8
	return append(r.FillBytes(make([]byte, size)), s.FillBytes(make([]byte, size))...), nil
}
