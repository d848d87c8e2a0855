// A real OpenID Connect provider for the tests, without forms: `login_hint` in the authorization request says who signs
// in, any name will do, and `deny` or none refuses. It prints its address when it is ready and ends when its standard
// input does. Clients come by dynamic registration (RFC 7591), so that a test can name the port that it got.
// With PORT in its environment it has the same address again, and new keys; else a free port. With LIKE=google it says of
// people what Google says, and without a hint the file WHO has the name.

import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

/** The service whose access tokens are JSON Web Tokens (RFC 8707, RFC 9068). */
const RESOURCE = 'https://portfolio.example';

const key = (type, options) => generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' });
const profile = (name) => process.env.LIKE === 'google'
  ? { name: `${name} by name`, email: name.includes('@') ? name : `${name}@club.example`, email_verified: true }
  : { preferred_username: name, name: `${name} by name`, email: `${name}@club.example` };

function provider(issuer) {
  const made = new Provider(issuer, {
    jwks: { keys: [key('rsa', { modulusLength: 2048 }), key('ec', { namedCurve: 'P-256' })] },
    cookies: { keys: [randomUUID()] },
    pkce: { required: () => true },
    claims: { openid: ['sub'], profile: ['preferred_username', 'name'], email: ['email', 'email_verified'] },
    // As most providers do, and against what the specification asks of this one.
    conformIdTokenClaims: false,
    // What identifies somebody is not their name.
    findAccount: (_ctx, name) => ({ accountId: name, claims: () => ({ sub: `subject-${name}`, ...profile(name) }) }),
    extraTokenClaims: (_ctx, token) => profile(token.accountId),
    ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
    interactions: { url: (_ctx, interaction) => `/choose/${interaction.uid}` },
    // Consent is not asked for. A new grant would end the codes of the one before.
    async loadExistingGrant(ctx) {
      const { client, session } = ctx.oidc;
      const existing = session.grantIdFor(client.clientId);
      if (existing) return made.Grant.find(existing);
      const grant = new made.Grant({ clientId: client.clientId, accountId: session.accountId });
      grant.addOIDCScope('openid profile email');
      grant.addResourceScope(RESOURCE, 'edit');
      await grant.save();
      return grant;
    },
    features: {
      devInteractions: { enabled: false },
      // Ids and secrets of a provider may begin with a hyphen.
      registration: { enabled: true, idFactory: () => `-${randomUUID()}`, secretFactory: () => `-_${randomUUID()}` },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_ctx, resource) => ({
          scope: 'edit',
          audience: resource,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  });

  made.use(async (ctx, next) => {
    if (!ctx.path.startsWith('/choose/')) return next();
    const { params } = await made.interactionDetails(ctx.req, ctx.res);
    const hint = params.login_hint ?? (process.env.WHO ? readFileSync(process.env.WHO, 'utf8') : 'deny');
    const result = hint === 'deny' ? { error: 'access_denied' } : { login: { accountId: hint } };
    await made.interactionFinished(ctx.req, ctx.res, result);
    ctx.respond = false;
  });
  return made;
}

const server = createServer().listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  server.on('request', provider(issuer).callback());
  console.log(issuer);
});
process.stdin.on('end', () => process.exit()).resume();
