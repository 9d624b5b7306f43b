import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Controllers } from '../../agent/session/controllers.ts';
import { writeSecretFile } from '../../agent/session/files.ts';
import { loadIdentity } from '../../agent/session/identity.ts';
import { parseJoinCode } from '../../agent/wire/joincode.ts';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'switchyard-identity-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const key = (fill: number): Buffer => Buffer.alloc(32, fill);
const mode = async (name: string): Promise<number> => (await stat(join(folder, name))).mode & 0o777;

async function codeOf(controllers: Controllers): Promise<Uint8Array> {
  return parseJoinCode(await controllers.newCode()) ?? new Uint8Array(10);
}

describe('the identity', () => {
  it('is made once: P-256, self-signed, in a file for its owner alone', async () => {
    const made = await loadIdentity(folder);
    expect(await loadIdentity(folder)).toEqual(made);
    const certificate = new X509Certificate(made.certificatePem);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    expect(certificate.publicKey.asymmetricKeyDetails?.namedCurve).toBe('prime256v1');
    expect(certificate.checkPrivateKey(createPrivateKey(made.keyPem))).toBe(true);
    const spki = certificate.publicKey.export({ type: 'spki', format: 'der' });
    expect(made.fingerprint).toBe(createHash('sha256').update(spki).digest('hex'));
    expect(await mode('identity.json')).toBe(0o600);
    expect(await readdir(folder)).toEqual(['identity.json']);
  });

  it('is not replaced when its file is damaged, and the error does not quote the file', async () => {
    await loadIdentity(folder);
    const path = join(folder, 'identity.json');
    const content = await readFile(path, 'utf8');
    await writeFile(path, content.slice(0, 500));
    const error = await loadIdentity(folder).catch((thrown: unknown) => thrown);
    expect(String(error)).toContain('is damaged');
    expect(String(error)).not.toContain('PRIVATE KEY');
  });

  it('reads a file without touching it: whoever watches the folder sees no change', async () => {
    await loadIdentity(folder);
    const before = await stat(join(folder, 'identity.json'));
    await loadIdentity(folder);
    // The time of a change of mode counts as well, though the mode is the same.
    expect((await stat(join(folder, 'identity.json'))).ctimeMs).toBe(before.ctimeMs);
  });

  it('closes a file that others may read', async () => {
    await loadIdentity(folder);
    await chmod(join(folder, 'identity.json'), 0o644);
    await loadIdentity(folder);
    expect(await mode('identity.json')).toBe(0o600);
  });
});

describe('the control planes', () => {
  it('are kept with their keys; pairing burns the code in the same write', async () => {
    const writes: string[] = [];
    const controllers = await Controllers.load(folder, async (path, content) => {
      writes.push(content);
      await writeSecretFile(path, content);
    });
    const code = await codeOf(controllers);
    expect(await controllers.pair('desk', key(1), code)).toBe('stored');
    expect(writes).toHaveLength(2);
    expect(JSON.parse(writes[1] ?? '')).toMatchObject({ joinCode: null, controllers: [{ id: 'desk' }] });
    const again = await Controllers.load(folder);
    expect([again.ids(), again.code()]).toEqual([['desk'], null]);
    expect(Buffer.from(again.key('desk') ?? []).equals(key(1))).toBe(true);
    expect(await mode('controllers.json')).toBe(0o600);
  });

  it('take one of two that prove the same code at once', async () => {
    const controllers = await Controllers.load(folder);
    const code = await codeOf(controllers);
    const outcomes = await Promise.all([controllers.pair('a', key(1), code), controllers.pair('b', key(2), code)]);
    expect(outcomes).toEqual(['stored', 'code-gone']);
  });

  it('change nothing when the disk refuses a pairing', async () => {
    let full = false;
    const controllers = await Controllers.load(folder, async () => {
      if (full) throw new Error('ENOSPC');
    });
    const code = await codeOf(controllers);
    full = true;
    await expect(controllers.pair('desk', key(1), code)).rejects.toThrow('ENOSPC');
    expect([controllers.ids(), controllers.code()]).toEqual([[], code]);
    full = false;
    expect(await controllers.pair('desk', key(1), code)).toBe('stored');
  });

  it('are eight at most; one that is known may pair again', async () => {
    const controllers = await Controllers.load(folder);
    for (let index = 0; index < 8; index += 1) await controllers.admit(`cp${index}`, key(index));
    expect(await controllers.pair('ninth', key(9), await codeOf(controllers))).toBe('full');
    await expect(controllers.admit('ninth', key(9))).rejects.toThrow(RangeError);
    const code = controllers.code() ?? new Uint8Array(10);
    expect(await controllers.pair('cp3', key(33), code)).toBe('stored');
    expect(controllers.count).toBe(8);
  });

  it('are gone from memory before the disk knows, and from the disk with the next write', async () => {
    let full = false;
    const controllers = await Controllers.load(folder, async (path, content) => {
      if (full) throw new Error('ENOSPC');
      await writeSecretFile(path, content);
    });
    await controllers.admit('desk', key(1));
    full = true;
    const revoked = controllers.revoke('desk');
    expect(controllers.key('desk')).toBeNull();
    await expect(revoked).rejects.toThrow('ENOSPC');
    full = false;
    await controllers.newCode();
    expect((await Controllers.load(folder)).ids()).toEqual([]);
  });

  it('are not forgotten when the file is damaged', async () => {
    const controllers = await Controllers.load(folder);
    await controllers.admit('desk', key(1));
    await writeFile(join(folder, 'controllers.json'), '{"v":1,"controllers":[{"id":"desk","key":"secret-thing"}]}');
    const error = await Controllers.load(folder).catch((thrown: unknown) => thrown);
    expect(String(error)).toContain('is damaged');
    expect(String(error)).not.toContain('secret-thing');
  });
});
