// An authorization server on a free port of 127.0.0.1, which it prints. Everyone can
// log in, with any password. Access tokens last $TTL seconds; refresh tokens can be
// used once, and who uses one again loses the login. The client "guard" introspects. The
// client "app" has a secret, and logs in from any port of 127.0.0.1. The clients "robot", by a
// secret, and "signer", by a key whose public half is the JWK $SIGNER_KEY, sign in as themselves.
import http from 'node:http';
import { pathToFileURL } from 'node:url';

const { default: Provider } = await import(pathToFileURL(process.env.OIDC_PROVIDER).href);
const ttl = Number(process.env.TTL);

const server = http.createServer();
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  clients: [{
    client_id: 'app', client_secret: 'app-secret-of-this-test', redirect_uris: ['http://127.0.0.1/callback'], application_type: 'native',
    grant_types: ['authorization_code', 'refresh_token'], token_endpoint_auth_method: 'client_secret_post',
  }, {
    client_id: 'guard', client_secret: 'guard-secret-of-this-test', redirect_uris: [], response_types: [], grant_types: [],
    token_endpoint_auth_method: 'client_secret_post', introspection_endpoint_auth_method: 'client_secret_post',
  }, {
    client_id: 'robot', client_secret: 'robot-secret-of-this-test', redirect_uris: [], response_types: [], grant_types: ['client_credentials'],
    token_endpoint_auth_method: 'client_secret_basic', scope: 'mcp',
  }, ...(process.env.SIGNER_KEY ? [{
    client_id: 'signer', jwks: { keys: [JSON.parse(process.env.SIGNER_KEY)] }, redirect_uris: [], response_types: [], grant_types: ['client_credentials'],
    token_endpoint_auth_method: 'private_key_jwt', scope: 'mcp',
  }] : [])],
  clientAuthMethods: ['none', 'client_secret_post', 'client_secret_basic', 'private_key_jwt'],
  cookies: { keys: ['only for this test'] },
  pkce: { required: () => true },
  rotateRefreshToken: () => true,
  issueRefreshToken: (ctx, client) => client.grantTypeAllowed('refresh_token'),
  scopes: ['openid', 'offline_access', 'mcp', 'admin'],
  ttl: { AccessToken: () => ttl, RefreshToken: () => 3600, Grant: () => 3600, Session: () => 3600, Interaction: () => 3600 },
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    introspection: { enabled: true, allowedPolicy: (ctx, client) => client.clientId === 'guard' },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (ctx, resource) => ({ scope: 'mcp admin', audience: resource, accessTokenTTL: ttl, accessTokenFormat: 'opaque' }),
    },
  },
});
server.on('request', provider.callback());
console.log(issuer);
process.stdin.on('end', () => process.exit()).resume();
