import type { MessageBoxOptions } from 'electron';
import { describe, expect, it, vi } from 'vitest';
import { Desktop } from '../../main/desktop/desktop.ts';
import type { TrayActions } from '../../main/desktop/tray-menu.ts';
import { LEAVING } from '../support/console-data.ts';

/** A desktop whose tray is clicked by the test, and a person who answers with one button. */
function rig(leaves: typeof LEAVING.leaves, button: number, systemLanguage = 'en-US') {
  const asked: MessageBoxOptions[] = [];
  const called: [string, unknown][] = [];
  const redraw = vi.fn();
  let act: TrayActions | null = null;
  const desktop = new Desktop({
    window: { open: () => undefined, hide: () => undefined } as never,
    makeTray: (actions) => {
      act = actions;
      return {
        start: () => true,
        update: () => undefined,
        setLanguage: () => undefined,
        stop: () => undefined,
        redraw,
      } as never;
    },
    trayCanBeSeen: true,
    systemLanguage,
    notify: () => undefined,
    ask: async (options) => {
      asked.push(options);
      return button;
    },
    setStartAtLogin: async () => undefined,
    quit: () => undefined,
  });
  desktop.attach({
    call: async (name, input) => {
      called.push([name, input]);
      return name === 'roles.preview' ? { ...LEAVING, leaves } : {};
    },
    pushCloudKey: async () => undefined,
    topics: { subscribe: () => () => undefined },
    onPower: () => undefined,
  });
  const click = async (policy: Parameters<TrayActions['setPolicy']>[1]) => {
    act?.setPolicy('rlm', policy);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { asked, called, redraw, click, updates: () => called.filter(([name]) => name === 'roles.update') };
}

describe('a policy chosen in the tray', () => {
  it('that lets texts out is asked about first, with whom they go to, and cancelled by Escape and Enter', async () => {
    const { asked, click, updates, redraw } = rig(LEAVING.leaves, 0);
    await click('backup');
    expect(asked).toMatchObject([
      {
        message: 'Let texts of rlm leave the network?',
        detail: expect.stringContaining('“Backup” its texts may go to OpenRouter (openrouter.ai) for deepseek/'),
        defaultId: 0,
        cancelId: 0,
      },
    ]);
    expect(updates()).toEqual([]);
    // The click has moved the menu's mark, which has to go back.
    expect(redraw).toHaveBeenCalledTimes(1);
  });

  it('is made when the person says so, in the language of the person', async () => {
    const { asked, click, updates } = rig({ openRouter: null, elsewhere: [] }, 1, 'fr-FR');
    await click('cloud');
    expect(asked[0]?.detail).toBe(
      'Jusqu’ici, rien de rlm ne quitte votre réseau. Avec « Cloud », ses textes pourront aller chez qui sera choisi plus tard dans le cloud.',
    );
    expect(updates()).toEqual([['roles.update', { id: 'rlm', patch: { policy: 'cloud' } }]]);
  });

  it('that lets nothing more out is made unasked', async () => {
    const { asked, click, updates } = rig(null, 0);
    await click('local');
    expect(asked).toEqual([]);
    expect(updates()).toHaveLength(1);
  });
});
