import type { HealthView } from '../../preload/contract.ts';
import { type Language, sayPlainly } from '../domain/said.ts';

export type { Language };

/** What the desktop says outside its window, in the console's languages. */
const WORDS = {
  open: { en: 'Open Switchyard', fr: 'Ouvrir Switchyard' },
  quit: { en: 'Quit', fr: 'Quitter' },
  starting: { en: 'Switchyard is starting', fr: 'Switchyard démarre' },
  stopping: { en: 'Switchyard is stopping', fr: 'Switchyard s’arrête' },
  serving: { en: 'Serving: {ready} of {all} machines ready', fr: 'En service : {ready} machines prêtes sur {all}' },
  nobody: { en: 'No machine is ready', fr: 'Aucune machine n’est prête' },
  needs: { en: '{count} need attention', fr: '{count} points à traiter' },
  pauseCloud: { en: 'Pause cloud', fr: 'Suspendre le cloud' },
  local: { en: 'Local', fr: 'Local' },
  backup: { en: 'Backup', fr: 'Secours' },
  aggregate: { en: 'Aggregate', fr: 'Cumul' },
  cloud: { en: 'Cloud', fr: 'Cloud' },
  stillServing: { en: 'Switchyard keeps serving', fr: 'Switchyard continue à servir' },
  stillServingBody: {
    en: 'The window is closed; tools are still answered. Open or quit it from the tray.',
    fr: 'La fenêtre est fermée ; les outils sont toujours servis. Ouvrez ou quittez depuis la zone de notification.',
  },
  closeTitle: { en: 'Keep serving?', fr: 'Continuer à servir ?' },
  closeBody: {
    en: 'Tools that use Switchyard are answered only while it runs.',
    fr: 'Les outils qui utilisent Switchyard ne sont servis que tant qu’il tourne.',
  },
  leavingTitle: {
    en: 'Let texts of {role} leave the network?',
    fr: 'Laisser les textes de {role} quitter le réseau ?',
  },
  leavingBody: {
    en: 'So far nothing of {role} leaves your network. With “{policy}” its texts may go to {whom}.',
    fr: 'Jusqu’ici, rien de {role} ne quitte votre réseau. Avec « {policy} », ses textes pourront aller chez {whom}.',
  },
  leavingModel: { en: 'OpenRouter ({hosts}) for {model}', fr: 'OpenRouter ({hosts}) pour {model}' },
  leavingNobody: {
    en: 'whoever in the cloud is chosen for it later',
    fr: 'qui sera choisi plus tard dans le cloud',
  },
  letLeave: { en: 'Let them leave', fr: 'Les laisser sortir' },
  keepServing: { en: 'Keep serving', fr: 'Continuer à servir' },
  cancel: { en: 'Cancel', fr: 'Annuler' },
  cannotStart: { en: 'Switchyard cannot start', fr: 'Switchyard ne peut pas démarrer' },
  startFailed: {
    en: 'The start failed. The event log may say why.',
    fr: 'Le démarrage a échoué. Le journal des événements dit peut-être pourquoi.',
  },
  noLoginEntry: {
    en: 'Starting at login could not be changed',
    fr: 'Le démarrage à l’ouverture de session n’a pas pu être changé',
  },
  refused: { en: 'That was refused', fr: 'Cela a été refusé' },
} as const;
export type Word = keyof typeof WORDS;

export function say(language: Language, word: Word, figures: Readonly<Record<string, string | number>> = {}): string {
  return WORDS[word][language].replace(/\{(\w+)\}/g, (hole, name: string) => String(figures[name] ?? hole));
}

/** Title and sentence of what needs a person. */
export function inWords(
  { title, titleSays, sentence, says }: Pick<HealthView, 'title' | 'titleSays' | 'sentence' | 'says'>,
  language: Language,
): { readonly title: string; readonly sentence: string } {
  return {
    title: titleSays ? sayPlainly(language, { ...titleSays, sentence: title }) : title,
    sentence: says ? sayPlainly(language, { ...says, sentence }) : sentence,
  };
}

export function languageOf(chosen: 'system' | Language, system: string): Language {
  if (chosen !== 'system') return chosen;
  return system.toLowerCase().startsWith('fr') ? 'fr' : 'en';
}
