import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app/app.tsx';
import { watchFocus } from './components/focus-place.ts';
import { ConsoleContext, createQueries } from './state/console.tsx';
import { createFeedStore } from './state/feed-store.ts';
import { startTicker, TickerContext } from './state/ticker.tsx';
import { createUiStore } from './state/ui-store.ts';
import { chooseTransport } from './transport/choose.ts';

/** The composition root of a window: everything that lives as long as the page does is made here. */
async function start(host: HTMLElement): Promise<void> {
  const transport = chooseTransport(window);
  const feed = createFeedStore(transport, () => Date.now());
  const queries = createQueries();
  const ticker = startTicker(window);
  const ui = createUiStore();
  watchFocus(document);
  // The ticket of a browser's address is spent before the first question is asked.
  await transport.start();
  createRoot(host).render(
    <StrictMode>
      <ConsoleContext value={{ transport, feed }}>
        <TickerContext value={ticker.store}>
          <QueryClientProvider client={queries}>
            <App ui={ui} />
          </QueryClientProvider>
        </TickerContext>
      </ConsoleContext>
    </StrictMode>,
  );
}

const host = document.getElementById('root');
if (host) void start(host);
