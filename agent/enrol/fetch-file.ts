import { createHash, type Hash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { EnvHttpProxyAgent, request } from 'undici';
import { type Progress, StepFailed } from './steps.ts';

const MAX_REDIRECTS = 5;
const SILENCE_MS = 60_000;

/** A file of the outside world that was fixed when this release was built. */
export interface PinnedFile {
  readonly url: string;
  readonly sha256: string;
}

/** The same file at a mirror. */
export const atMirror = (file: PinnedFile, mirror: string | null): PinnedFile =>
  mirror === null ? file : { ...file, url: `${mirror}/${path.posix.basename(new URL(file.url).pathname)}` };

/**
 * Fetches a file into `folder`, going on where an earlier attempt ended.
 * @returns its path; its checksum is right
 * @throws StepFailed
 */
export async function fetchFile(file: PinnedFile, folder: string, progress: Progress): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const whole = path.join(folder, file.sha256);
  const part = `${whole}.part`;
  if ((await bytesOf(whole)) > 0) {
    if ((await hashOf(whole)).digest('hex') === file.sha256) return whole;
    await rm(whole);
  }
  for (let from = await bytesOf(part); ; from = 0) {
    if (from === 0) await rm(part, { force: true });
    const hash = from === 0 ? createHash('sha256') : await hashOf(part);
    const isWhole = from > 0 && hash.copy().digest('hex') === file.sha256;
    const came = isWhole || (await append(file.url, part, from, hash, progress));
    if (came && (isWhole || hash.digest('hex') === file.sha256)) break;
    if (from > 0) continue; // the beginning was that of another file, or the other side does not take up again
    await rm(part, { force: true });
    throw new StepFailed(
      'checksum_wrong',
      'What was downloaded is not what this release was built with. Nothing of it was used.',
    );
  }
  await rename(part, whole);
  return whole;
}

async function bytesOf(file: string): Promise<number> {
  return (await stat(file).catch(() => null))?.size ?? 0;
}

async function hashOf(file: string): Promise<Hash> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash;
}

/** @returns false when the other side does not go on from there */
async function append(url: string, part: string, from: number, hash: Hash, progress: Progress): Promise<boolean> {
  const dispatcher = new EnvHttpProxyAgent({ headersTimeout: SILENCE_MS, bodyTimeout: SILENCE_MS });
  try {
    const { statusCode, headers, body } = await follow(url, from, dispatcher);
    if (from > 0 && statusCode !== 206) {
      body.on('error', () => undefined).destroy();
      return false;
    }
    if (statusCode !== 200 && statusCode !== 206) throw new Error('not there');
    const length = Number(headers['content-length'] ?? 0);
    let bytes = from;
    await pipeline(
      body,
      async function* (source) {
        for await (const chunk of source as AsyncIterable<Buffer>) {
          hash.update(chunk);
          bytes += chunk.length;
          if (length > 0) progress.percent((100 * bytes) / (from + length));
          yield chunk;
        }
      },
      createWriteStream(part, { flags: 'a', mode: 0o600 }),
    );
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') {
      throw new StepFailed('disk_full', 'The disk is full. Make room and run the same command again.');
    }
    throw new StepFailed(
      'download_failed',
      'The download failed. Run the same command again: it goes on from there. A mirror can be named with --mirror.',
    );
  } finally {
    await dispatcher.destroy().catch(() => undefined);
  }
}

async function follow(url: string, from: number, dispatcher: EnvHttpProxyAgent) {
  let at = new URL(url);
  const isSafe = at.protocol === 'https:';
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const answer = await request(at, { dispatcher, headers: from > 0 ? { range: `bytes=${from}-` } : {} });
    const { location } = answer.headers;
    if (answer.statusCode < 300 || answer.statusCode > 399 || typeof location !== 'string') return answer;
    await answer.body.dump();
    at = new URL(location, at);
    if (isSafe && at.protocol !== 'https:') break;
  }
  throw new Error('too many redirects, or one to plain http');
}
