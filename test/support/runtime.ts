import { existsSync } from 'node:fs';
import { describe, it } from 'vitest';

/** Debian's and others' places of a Chromium; null where there is none. */
export const CHROMIUM =
  ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync) ?? null;

/**
 * A suite that needs something of the machine. Where that is missing the suite is skipped and its name says why; under
 * `SWITCHYARD_NO_SKIP=1` (continuous integration) it fails instead.
 *
 * @param missing a sentence about what is missing; null when all is there
 */
export function describeWithRuntime(missing: string | null, name: string, body: () => void): void {
  if (missing === null) describe(name, body);
  else if (process.env.SWITCHYARD_NO_SKIP === '1') {
    describe(name, () => {
      it('has what it needs to run', () => {
        throw new Error(missing);
      });
    });
  } else describe.skip(`${name} (skipped: ${missing})`, body);
}

export function describeWithChromium(name: string, body: () => void): void {
  describeWithRuntime(CHROMIUM === null ? 'no Chromium on this machine' : null, name, body);
}
