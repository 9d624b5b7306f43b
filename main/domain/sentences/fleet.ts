import type { Sentence } from './sentence.ts';

/** Machines, their agents and engines, and how they are found. */
export const FLEET = {
  machine_says: { en: '{name}:', fr: '{name} :' },
  machine_unknown: {
    en: 'Nothing has been heard of this machine yet.',
    fr: 'Rien n’a encore été entendu de cette machine.',
  },
  machine_draining: {
    en: 'What runs may end; nothing new starts.',
    fr: 'Le travail en cours se termine ; rien de nouveau ne commence.',
  },
  machine_maintenance: {
    en: 'Taken out of service by the operator.',
    fr: 'Mise hors service par l’opérateur.',
  },
  machine_degraded: {
    en: 'An engine of this machine does not answer.',
    fr: 'Un moteur de cette machine ne répond pas.',
  },
  machine_not_ready: { en: 'The machine is not ready.', fr: 'La machine n’est pas prête.' },
  closed: {
    en: 'The connection to the agent broke; it is being made anew.',
    fr: 'La connexion à l’agent s’est rompue ; elle est rétablie.',
  },
  silent: {
    en: 'Nothing was heard of the agent for 15 s.',
    fr: 'L’agent ne s’est pas manifesté depuis 15 s.',
  },
  bye: { en: 'The agent stopped.', fr: 'L’agent s’est arrêté.' },
  revoked: {
    en: 'This control plane was removed on that machine; pair it again.',
    fr: 'Ce centre de contrôle a été retiré sur cette machine ; associez-la de nouveau.',
  },
  violation: {
    en: 'The agent broke the protocol; the connection was closed.',
    fr: 'L’agent a enfreint le protocole ; la connexion a été fermée.',
  },
  superseded: {
    en: 'Another session of this control plane took over; is a second Switchyard running on the same data folder?',
    fr: 'Une autre session de ce centre de contrôle a pris le relais ; un second Switchyard utilise-t-il le même dossier de données ?',
  },
  node_closed: {
    en: '{name}: the connection to the agent broke; it is being made anew.',
    fr: '{name} : la connexion à l’agent s’est rompue ; elle est rétablie.',
  },
  node_fell_silent: {
    en: '{name}: nothing was heard of the agent for 15 s.',
    fr: '{name} : l’agent ne s’est pas manifesté depuis 15 s.',
  },
  node_bye: { en: '{name}: the agent stopped.', fr: '{name} : l’agent s’est arrêté.' },
  node_revoked: {
    en: '{name}: this control plane was removed on that machine; pair it again.',
    fr: '{name} : ce centre de contrôle a été retiré sur cette machine ; associez-la de nouveau.',
  },
  node_violation: {
    en: '{name}: the agent broke the protocol; the connection was closed.',
    fr: '{name} : l’agent a enfreint le protocole ; la connexion a été fermée.',
  },
  node_superseded: {
    en: '{name}: another session of this control plane took over; is a second Switchyard running on the same data folder?',
    fr: '{name} : une autre session de ce centre de contrôle a pris le relais ; un second Switchyard utilise-t-il le même dossier de données ?',
  },
  node_key_changed: {
    en: '{name} shows its next key; the one before is not taken any more.',
    fr: '{name} présente sa nouvelle clé ; l’ancienne n’est plus acceptée.',
  },
  node_key_unreadable: {
    en: 'The key of {name} cannot be opened. Give the keyring that sealed it, or pair the machine again.',
    fr: 'La clé de {name} ne peut pas être ouverte. Fournissez le trousseau qui l’a scellée, ou associez de nouveau la machine.',
  },
  node_paired: { en: 'Paired with the agent at {address}.', fr: 'Associé à l’agent à l’adresse {address}.' },
  node_removed: { en: '{name} was removed.', fr: '{name} a été retirée.' },
  node_removed_untold: {
    en: '{name} was removed here but could not be told. On that machine run: npm run agent -- controllers rm {controller}',
    fr: '{name} a été retirée ici mais n’a pas pu être prévenue. Sur cette machine, lancez : npm run agent -- controllers rm {controller}',
  },
  node_moved: { en: '{name} answers at {address} now.', fr: '{name} répond maintenant à l’adresse {address}.' },
  embedded_agent_ended: {
    en: 'The agent of this machine ended and is started again in {delayMs}.',
    fr: 'L’agent de cette machine s’est arrêté ; il redémarre dans {delayMs}.',
  },
  engine_silent_one: {
    en: 'One of its engines does not answer.',
    fr: 'Un de ses moteurs ne répond pas.',
  },
  discovery_port_held: {
    en: 'Another program holds UDP port 5353 for itself, so machines announced by mDNS are not heard. They are still asked by broadcast, and can be added by address.',
    fr: 'Un autre programme garde le port UDP 5353 pour lui : les machines annoncées par mDNS ne sont pas entendues. Elles sont encore cherchées par diffusion, et peuvent être ajoutées par leur adresse.',
  },
  discovery_forbidden: {
    en: 'This system does not let Switchyard listen for mDNS. Add machines by their address.',
    fr: 'Ce système ne laisse pas Switchyard écouter mDNS. Ajoutez les machines par leur adresse.',
  },
  discovery_failed: {
    en: 'Listening for mDNS failed and is tried again. Machines can be added by their address.',
    fr: 'L’écoute de mDNS a échoué ; une autre tentative suivra. Les machines peuvent être ajoutées par leur adresse.',
  },
} as const satisfies Record<string, Sentence>;

/**
 * What agents say over the wire in fixed English, word for word: `knownFrom` finds it by its text, since an agent of another
 * version may say anything under the same code.
 */
export const AGENTS = {
  agent_port_held: {
    en: 'Another program holds UDP port 5353 for itself, so this machine is not announced by mDNS. It still answers broadcast queries.',
    fr: 'Un autre programme garde le port UDP 5353 pour lui : cette machine n’est pas annoncée par mDNS. Elle répond encore aux recherches par diffusion.',
  },
  agent_mdns_forbidden: {
    en: 'This system does not let the agent announce itself by mDNS. Add the machine by its address.',
    fr: 'Ce système ne laisse pas l’agent s’annoncer par mDNS. Ajoutez la machine par son adresse.',
  },
  agent_mdns_failed: {
    en: 'The mDNS socket failed and is opened again. The machine can be added by its address.',
    fr: 'L’annonce par mDNS a échoué et est relancée. La machine peut être ajoutée par son adresse.',
  },
  agent_name_taken: {
    en: 'Another machine announces itself under the name of this one; the agent took a new name.',
    fr: 'Une autre machine s’annonce sous le même nom ; l’agent en a pris un nouveau.',
  },
  agent_query_port_held: {
    en: 'UDP port 7412 cannot be opened, so broadcast queries are not answered. The machine can be added by its address.',
    fr: 'Le port UDP 7412 ne peut pas être ouvert : les recherches par diffusion restent sans réponse. La machine peut être ajoutée par son adresse.',
  },
  agent_key_changed: {
    en: 'The agent shows its next key from now on.',
    fr: 'L’agent présente désormais sa nouvelle clé.',
  },
  engine_unasked: { en: 'It has not answered yet.', fr: 'Il n’a pas encore répondu.' },
  engine_wrong_kind: {
    en: 'It answers, but not as this kind of engine should.',
    fr: 'Il répond, mais pas comme un moteur de ce genre le devrait.',
  },
  engine_loading_model: { en: 'The engine is loading its model.', fr: 'Le moteur charge son modèle.' },
  engine_examined: {
    en: 'The agent is finding out what the engine can do.',
    fr: 'L’agent détermine ce que le moteur sait faire.',
  },
  engine_three_silences: {
    en: 'It did not answer three times in a row.',
    fr: 'Il n’a pas répondu trois fois de suite.',
  },
  engine_no_cloud_key: {
    en: 'This agent holds no OpenRouter key.',
    fr: 'Cet agent ne tient pas de clé OpenRouter.',
  },
} as const satisfies Record<string, Sentence>;
