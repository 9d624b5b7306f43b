import { createStore, type StoreApi } from 'zustand/vanilla';
import type { TopicName } from '../../preload/contract.ts';
import type { Connection, Transport } from '../transport/port.ts';
import { applyUpdate, type TopicState } from './apply-update.ts';

export interface FeedState {
  readonly topics: TopicState;
  readonly connection: Connection;
  /** When anything was last heard; the base of "last sample 42 s ago". */
  readonly heardAtMs: number | null;
}
export type FeedStore = StoreApi<FeedState> & {
  /** Counts the readers of a topic; the returned function takes one away. */
  readonly subscribeTopic: (topic: TopicName) => () => void;
  readonly stop: () => void;
};

/** Keeps what the control plane broadcasts, and asks it only for topics that somebody reads. */
export function createFeedStore(transport: Transport, wallMs: () => number): FeedStore {
  const store = createStore<FeedState>(() => ({ topics: {}, connection: 'connecting', heardAtMs: null }));
  const readers = new Map<TopicName, number>();
  let announced = false;
  const announce = () => {
    if (announced) return;
    announced = true;
    // One message for all readers that come and go in the same turn.
    queueMicrotask(() => {
      announced = false;
      transport.want([...readers.keys()]);
    });
  };
  const offs = [
    transport.onUpdate((update) =>
      store.setState((state) => ({ topics: applyUpdate(state.topics, update), heardAtMs: wallMs() })),
    ),
    transport.onConnection((connection) => store.setState({ connection })),
  ];
  return {
    ...store,
    subscribeTopic: (topic) => {
      readers.set(topic, (readers.get(topic) ?? 0) + 1);
      if (readers.get(topic) === 1) announce();
      return () => {
        const left = (readers.get(topic) ?? 1) - 1;
        if (left > 0) readers.set(topic, left);
        else {
          readers.delete(topic);
          announce();
        }
      };
    },
    stop: () => {
      for (const off of offs) off();
    },
  };
}
