import { createHash, createPrivateKey, generateKeyPair as generate, randomBytes, X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { readSecretFile, writeSecretFile } from './files.ts';
import { selfSignedCertificate } from './self-signed.ts';

const generateKeyPair = promisify(generate);

/** Who this agent is: stable across restarts and addresses. */
export interface Identity {
  /** Random id, made once: 32 lower-case hex digits. */
  readonly node: string;
  readonly certificatePem: string;
  readonly keyPem: string;
  /** SHA-256 of the certificate's public key (SPKI), 64 lower-case hex digits. */
  readonly fingerprint: string;
}

const FILE = 'identity.json';
const Stored = z.object({
  v: z.literal(1),
  node: z.string().regex(/^[0-9a-f]{32}$/),
  certificatePem: z.string().max(8192),
  keyPem: z.string().max(8192),
});

/**
 * Reads the identity kept in `folder`, or makes one: an EC P-256 key and a self-signed certificate in one file of mode 0600,
 * so that there is never one without the other. Rejects when a file is there but unreadable: a silently new identity would
 * look like an attack to every paired control plane.
 */
export async function loadIdentity(folder: string): Promise<Identity> {
  const path = join(folder, FILE);
  const content = await readSecretFile(path);
  if (content === null) {
    const made = await makeIdentity();
    await writeSecretFile(path, JSON.stringify({ v: 1, ...made }));
    return withFingerprint(made);
  }
  try {
    const stored = Stored.parse(JSON.parse(content));
    const certificate = new X509Certificate(stored.certificatePem);
    if (!certificate.checkPrivateKey(createPrivateKey(stored.keyPem))) throw new Error('key and certificate differ');
    return withFingerprint(stored);
  } catch {
    // The parsers' own messages quote the file, and the file holds the key.
    throw new Error(
      `${path} is damaged. Restore it, or remove it to give this machine a new identity and pair it again.`,
    );
  }
}

/** SHA-256 over the SPKI of a certificate, as 64 lower-case hex digits. */
export function certificateFingerprint(certificate: X509Certificate): string {
  return createHash('sha256')
    .update(certificate.publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex');
}

function withFingerprint(made: Omit<Identity, 'fingerprint'>): Identity {
  return {
    node: made.node,
    certificatePem: made.certificatePem,
    keyPem: made.keyPem,
    fingerprint: certificateFingerprint(new X509Certificate(made.certificatePem)),
  };
}

async function makeIdentity(): Promise<Omit<Identity, 'fingerprint'>> {
  const { privateKey, publicKey } = await generateKeyPair('ec', { namedCurve: 'P-256' });
  const node = randomBytes(16).toString('hex');
  // Peers pin the key and look at nothing else, so the dates only have to please other people's tools.
  const certificatePem = selfSignedCertificate({
    commonName: `switchyard-agent-${node.slice(0, 8)}`,
    serial: Buffer.concat([Buffer.of(1), randomBytes(8)]),
    notBefore: new Date('2020-01-01T00:00:00Z'),
    notAfter: new Date('2099-12-31T23:59:59Z'),
    privateKey,
    publicKey,
  });
  return { node, certificatePem, keyPem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
}
