import { createHash, createPrivateKey, randomBytes, webcrypto, X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { readSecretFile, writeSecretFile } from './files.ts';

/** A key with its self-signed certificate. */
export interface KeyPair {
  readonly certificatePem: string;
  readonly keyPem: string;
  /** SHA-256 of the certificate's public key (SPKI), 64 lower-case hex digits. */
  readonly fingerprint: string;
}

/** Who this agent is: stable across restarts and addresses. */
export interface Identity extends KeyPair {
  /** Random id, made once: 32 lower-case hex digits. */
  readonly node: string;
  /** Made to take the place of the key above, once every control plane knows it; null: none is on its way. */
  readonly next: KeyPair | null;
}

const FILE = 'identity.json';
const StoredPair = { certificatePem: z.string().max(8192), keyPem: z.string().max(8192) };
const Stored = z.object({
  v: z.literal(1),
  node: z.string().regex(/^[0-9a-f]{32}$/),
  ...StoredPair,
  next: z.object(StoredPair).optional(),
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
    const node = randomBytes(16).toString('hex');
    return await store(folder, { node, ...(await makeKeyPair(node)), next: null });
  }
  try {
    const { node, next, ...pair } = Stored.parse(JSON.parse(content));
    return { node, ...checked(pair), next: next === undefined ? null : checked(next) };
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

/** Makes the key that will take the place of the present one, unless one is on its way already. */
export async function prepareNextKey(folder: string): Promise<Identity> {
  const identity = await loadIdentity(folder);
  if (identity.next !== null) return identity;
  return await store(folder, { ...identity, next: await makeKeyPair(identity.node) });
}

/** The key on its way, or where there is none a fresh one, becomes the agent's. The one before is gone when this resolves. */
export async function takeNextKey(folder: string): Promise<Identity> {
  const identity = await loadIdentity(folder);
  const next = identity.next ?? (await makeKeyPair(identity.node));
  return await store(folder, { node: identity.node, ...next, next: null });
}

async function store(folder: string, identity: Identity): Promise<Identity> {
  const { node, certificatePem, keyPem, next } = identity;
  const following = next === null ? {} : { next: { certificatePem: next.certificatePem, keyPem: next.keyPem } };
  await writeSecretFile(join(folder, FILE), JSON.stringify({ v: 1, node, certificatePem, keyPem, ...following }));
  return identity;
}

/** @throws when key and certificate do not belong together */
function checked({ certificatePem, keyPem }: Omit<KeyPair, 'fingerprint'>): KeyPair {
  const certificate = new X509Certificate(certificatePem);
  if (!certificate.checkPrivateKey(createPrivateKey(keyPem))) throw new Error('key and certificate differ');
  return { certificatePem, keyPem, fingerprint: certificateFingerprint(certificate) };
}

type X509Library = Pick<typeof import('@peculiar/x509'), 'X509CertificateGenerator'>;

async function makeKeyPair(node: string): Promise<KeyPair> {
  // Loaded only here: it costs 100 ms and 10 MB that every later start would pay. It needs the reflection polyfill first.
  await import('reflect-metadata');
  const library: X509Library & { readonly default?: X509Library } = await import('@peculiar/x509');
  // Inside a bundle it is CommonJS, whose names lie under `default` when it is loaded late.
  const { X509CertificateGenerator } = library.default ?? library;
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  // Peers pin the key and look at nothing else, so the dates only have to please other people's tools.
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: `01${randomBytes(8).toString('hex')}`,
      name: `CN=switchyard-agent-${node.slice(0, 8)}`,
      notBefore: new Date('2020-01-01T00:00:00Z'),
      notAfter: new Date('2099-12-31T23:59:59Z'),
      signingAlgorithm: algorithm,
      // Node's web crypto and the DOM's have the same shape and different type names.
      keys: keys as unknown as CryptoKeyPair,
    },
    webcrypto as unknown as Crypto,
  );
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey));
  const key = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' });
  const keyPem = key.export({ type: 'pkcs8', format: 'pem' }).toString();
  pkcs8.fill(0);
  return checked({ certificatePem: certificate.toString('pem'), keyPem });
}
