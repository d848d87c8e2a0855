// The development server of a front end of both services. BOOKING and PORTFOLIO say where these are, for `scripts/run`
// nothing.

import type { UserConfig } from 'vite';

// The short form, a text, would change the header `Host`: then every write looks as if another site had sent it (403).
const booking = { target: process.env['BOOKING'] ?? 'http://127.0.0.1:3000', changeOrigin: false };
const portfolio = { target: process.env['PORTFOLIO'] ?? 'http://127.0.0.1:3001', changeOrigin: false };
// A path is the beginning of others, a regular expression is not.
const pages = ['/board', '/sign-in', '/sign-out', '/dev/sign-in'].map((page) => `^${page}(\\?|$)`);
const paths = ['/api/', '/icons/', ...pages];

export default {
  // The first path that fits counts.
  server: { proxy: { '/api/v1/': portfolio, ...Object.fromEntries(paths.map((path) => [path, booking])) } },
} satisfies UserConfig;
