import type { Answer } from './channels.ts';
import type { KeyPush } from './cloud.ts';
import type { PageId, TopicName } from './names.ts';
import type { TopicUpdate } from './topics.ts';

/** What the preload script puts on `window.switchyard`. Frozen, and all that a page of the desktop can reach. */
export interface ConsoleBridge {
  call(name: string, input: unknown): Promise<Answer>;
  /** The bytes are copied over, then zeroed by the caller. */
  pushCloudKey(bytes: Uint8Array, push: KeyPush): Promise<Answer>;
  /** The topics this window wants from now on; each begins with a snapshot. */
  want(topics: readonly TopicName[]): void;
  onUpdate(listener: (update: TopicUpdate) => void): () => void;
  onShow(listener: (page: PageId, target: string | null) => void): () => void;
}
