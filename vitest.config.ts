import { defineConfig } from 'vitest/config';

// Three projects. What is pure or cheap runs in parallel; what owns processes, ports or a browser runs one file at a time, because
// two cores shared by several engines make every time-out a lottery. Of the latter, `waiting` mostly waits (for a cooldown, a
// minute's window, a page), so that `npm test` can run it beside `fleet`, whose tests watch machines under load.
const waiting = [
  'test/e2e/{cloud,console}-*.test.ts',
  'test/e2e/bad-input.test.ts',
  'test/e2e/engines*.test.ts',
  'test/e2e/joining.test.ts',
];
const processes = ['test/e2e/**/*.test.ts', 'test/chaos/**/*.test.ts', 'test/standin/**/*.test.ts'];

// Real processes, sockets and clocks on a machine that others share: one stall of the host may not fail a whole landing. A test
// that needed its second try is reported as such.
const retry = process.env.CI ? 1 : 0;

const serial = {
  testTimeout: 90_000,
  hookTimeout: 120_000,
  fileParallelism: false,
  retry,
  expect: { poll: { timeout: 15_000 } },
};

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts', 'test/**/*.test.tsx'],
          exclude: processes,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          maxWorkers: 2,
          retry,
          expect: { poll: { timeout: 10_000 } },
        },
      },
      { test: { name: 'fleet', include: processes, exclude: waiting, ...serial } },
      { test: { name: 'waiting', include: waiting, ...serial } },
    ],
  },
});
