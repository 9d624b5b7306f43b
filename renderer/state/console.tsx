import { QueryClient, type UseQueryResult, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { createContext, useContext, useEffect } from 'react';
import { useStore } from 'zustand';
import type { Input, OperationName, Output, TopicName } from '../../preload/contract.ts';
import type { Connection, Transport } from '../transport/port.ts';
import type { TopicState } from './apply-update.ts';
import type { FeedStore } from './feed-store.ts';

export interface Console {
  readonly transport: Transport;
  readonly feed: FeedStore;
}

export const ConsoleContext = createContext<Console | null>(null);

export function useConsole(): Console {
  const value = useContext(ConsoleContext);
  if (!value) throw new Error('no console around this component');
  return value;
}

/** The control plane is next door: no retry storms, no refetch because a window got focus. */
export function createQueries(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: { retry: 1, retryDelay: 500, refetchOnWindowFocus: false, staleTime: 2000, networkMode: 'always' },
      mutations: { networkMode: 'always' },
    },
  });
}

/** What the control plane broadcasts on a topic; undefined until its first message. */
export function useTopic<Name extends TopicName>(name: Name): TopicState[Name] {
  const { feed } = useConsole();
  useEffect(() => feed.subscribeTopic(name), [feed, name]);
  return useStore(feed, (state) => state.topics[name]);
}

export function useConnection(): Connection {
  return useStore(useConsole().feed, (state) => state.connection);
}

export function useHeardAtMs(): number | null {
  return useStore(useConsole().feed, (state) => state.heardAtMs);
}

export function useRead<Name extends OperationName>(
  name: Name,
  input: Input<Name>,
  options: { readonly enabled?: boolean; readonly everyMs?: number | false } = {},
): UseQueryResult<Output<Name>, Error> {
  const { transport } = useConsole();
  return useQuery<Output<Name>, Error>({
    queryKey: [name, input],
    queryFn: () => transport.call(name, input),
    enabled: options.enabled ?? true,
    refetchInterval: options.everyMs ?? false,
  });
}

/** The settings as they were read, and as they become when anybody changes them anywhere. */
export function useSettings(): UseQueryResult<Output<'settings.get'>, Error> {
  const queries = useQueryClient();
  const heard = useTopic('settings');
  useEffect(() => {
    if (heard) queries.setQueryData(['settings.get', {}], heard);
  }, [heard, queries]);
  return useRead('settings.get', {});
}

/** Makes a change and reads `renews` again afterwards. Never for operations whose answer is a secret: results are cached. */
export function useChange<Name extends OperationName>(name: Name, renews: readonly OperationName[] = []) {
  const { transport } = useConsole();
  const queries = useQueryClient();
  return useMutation<Output<Name>, Error, Input<Name>>({
    mutationFn: (input) => transport.call(name, input),
    onSettled: () => {
      for (const renewed of renews) void queries.invalidateQueries({ queryKey: [renewed] });
    },
  });
}
