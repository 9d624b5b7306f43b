import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { defaultRouteAddress, thisComputer } from '../../main/platform/enrol-files.ts';

it('the installer is read byte by byte each time it is asked for, and is none while a part is missing', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'switchyard enrol %-'));
  try {
    const { files } = thisComputer(pathToFileURL(`${folder}${path.sep}`));
    const written = { sh: 'a', ps1: 'b', 'agent.tar.gz': '\0\u00ff' };
    for (const [name, text] of Object.entries(written)) {
      expect(await files()).toBeNull();
      writeFileSync(path.join(folder, name), Buffer.from(text, 'latin1'));
    }
    expect(await files()).toEqual({ sh: Buffer.from('a'), ps1: Buffer.from('b'), agent: Buffer.from([0, 255]) });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it('the address of the default route is one of this computer, or none', async () => {
  const own = Object.values(networkInterfaces()).flatMap((infos) => (infos ?? []).map(({ address }) => address));
  const address = await defaultRouteAddress();
  if (address !== null) expect([isIP(address) !== 0, own.includes(address)]).toEqual([true, true]);
});
