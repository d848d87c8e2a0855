// The development server of a front end of the booking-service. BOOKING says where that is, for `scripts/run` nothing.

// #region proxy
import type { UserConfig } from 'vite';

// The short form, a text, would change the header `Host`: then every write looks as if another site had sent it (403).
const service = { target: process.env['BOOKING'] ?? 'http://127.0.0.1:3000', changeOrigin: false };
const paths = ['/api/', '/icons/', '/board', '/sign-in', '/sign-out', '/dev/sign-in'];

export default {
  server: { proxy: Object.fromEntries(paths.map((path) => [path, service])) },
} satisfies UserConfig;
// #endregion
