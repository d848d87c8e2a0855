// The beginning of each program that drives Chromium: `launch` starts a browser, with more arguments if there are any.
import { chromium } from 'playwright-core';

const launch = (...more) => chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: [
    '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--no-first-run', ...more,
  ],
});

