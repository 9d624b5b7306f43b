import { expect, it } from 'vitest';
import { ERRORS } from '../../main/domain/errors.ts';
import { ERRORS_FR } from '../../main/domain/errors-fr.ts';
import { CATALOGUE } from '../../renderer/i18n/catalogue.ts';

it('a wrong join code is explained to who typed it, by an example and not by its alphabet', () => {
  for (const sentence of [ERRORS.invalid_join_code.sentence, ERRORS_FR.invalid_join_code]) {
    expect(sentence).toMatch(/16 (letters and digits|lettres et chiffres)/);
    expect(sentence).toContain('7K3M-Q2XH-9PZR-4TVW');
    expect(sentence).not.toMatch(/base32|Crockford/);
  }
});

it('what a key may not do is named as the endpoint and as the form name it', () => {
  const named = { en: ERRORS.policy_not_allowed.sentence, fr: ERRORS_FR.policy_not_allowed };
  for (const language of ['en', 'fr'] as const) {
    expect(named[language]).toContain('allowWiden');
    const [, quoted = ''] = /(?:"|« )([^"»]+?)(?:"| »)/.exec(named[language]) ?? [];
    expect(quoted).not.toBe('');
    expect(CATALOGUE['keys.widenMeans'][language]).toContain(quoted);
  }
});
