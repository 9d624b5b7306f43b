import type { Sentence } from './sentence.ts';

/**
 * Every reason for which a provider does not take an item. Codes are stable: they are kept on traces and shown by the admin
 * API.
 */
export const INELIGIBLE = {
  role_disabled: { en: 'The role is switched off.', fr: 'Le rôle est désactivé.' },
  other_model: {
    en: 'It serves another model than the one asked for.',
    fr: 'Il sert un autre modèle que celui demandé.',
  },
  policy_local: {
    en: 'The request may not leave the network and this provider is in the cloud.',
    fr: 'La requête ne doit pas quitter le réseau et ce fournisseur est dans le cloud.',
  },
  policy_cloud: {
    en: 'The request goes to the cloud only and this provider is local.',
    fr: 'La requête va uniquement au cloud et ce fournisseur est local.',
  },
  model_absent: { en: 'The model is not on the machine.', fr: 'Le modèle n’est pas sur la machine.' },
  context_too_small: {
    en: 'Prompt and answer do not fit its context window.',
    fr: 'La question et la réponse ne tiennent pas dans sa fenêtre.',
  },
  below_speed_floor: {
    en: 'It is slower than the floor of tokens per second set for the role.',
    fr: 'Il est plus lent que le minimum de jetons par seconde fixé pour le rôle.',
  },
  no_upstream_pin: {
    en: 'Cloud embeddings need a pinned upstream and none is pinned.',
    fr: 'Les vecteurs du cloud demandent un hébergeur épinglé et aucun ne l’est.',
  },
  verdict_failed: {
    en: 'Its vectors did not pass the check for this space.',
    fr: 'Ses vecteurs n’ont pas passé le contrôle de cet espace.',
  },
  verdict_reduced: {
    en: 'It passed only the reduced check, which does not count in a locally founded space.',
    fr: 'Il n’a passé que le contrôle réduit, qui ne compte pas dans un espace fondé localement.',
  },
  probe_failed: {
    en: 'The check of its vectors could not be completed; it is repeated.',
    fr: 'Le contrôle de ses vecteurs n’a pas pu aboutir ; il est répété.',
  },
  unverified: {
    en: 'Its vectors have not been checked for this space yet.',
    fr: 'Ses vecteurs n’ont pas encore été contrôlés pour cet espace.',
  },
  node_draining: {
    en: 'Its machine is draining: running work ends, nothing new starts.',
    fr: 'Sa machine se vide : le travail en cours se termine, rien de nouveau ne commence.',
  },
  node_maintenance: { en: 'Its machine is under maintenance.', fr: 'Sa machine est en maintenance.' },
  node_error: { en: 'Its machine reports an error.', fr: 'Sa machine signale une erreur.' },
  node_unreachable: { en: 'Its machine cannot be reached.', fr: 'Sa machine est injoignable.' },
  node_unknown: {
    en: 'The state of its machine is not known yet, as after sleep.',
    fr: 'L’état de sa machine n’est pas encore connu, comme après une veille.',
  },
  node_silent: {
    en: 'Its machine has not answered for 3 seconds.',
    fr: 'Sa machine ne répond plus depuis 3 secondes.',
  },
  engine_unreachable: {
    en: 'Its engine does not answer its probes.',
    fr: 'Son moteur ne répond pas aux sondes.',
  },
  cloud_paused: { en: 'The operator has paused the cloud.', fr: 'L’opérateur a suspendu le cloud.' },
  cloud_off: {
    en: 'The cloud account cannot be used now: credit, key or limit.',
    fr: 'Le compte cloud est inutilisable pour l’instant : crédit, clé ou limite.',
  },
  key_missing: { en: 'Its agent holds no cloud key.', fr: 'Son agent ne tient pas de clé cloud.' },
  key_stale: {
    en: 'Its agent holds an older cloud key than the newest push.',
    fr: 'Son agent tient une clé plus ancienne que la dernière envoyée.',
  },
  spend_cap: { en: 'A spend cap has been reached.', fr: 'Un plafond de dépense est atteint.' },
  free_tier_spent: {
    en: 'The free-tier limit of the day is used up.',
    fr: 'La limite gratuite du jour est épuisée.',
  },
  cooling: {
    en: 'It said that it is busy and is left alone for a moment.',
    fr: 'Il s’est dit occupé ; on le laisse tranquille un moment.',
  },
  parked: {
    en: 'It failed twice in a row or fell silent and is parked until its next trial.',
    fr: 'Il a échoué deux fois de suite ou s’est tu ; il attend son prochain essai.',
  },
  already_tried: { en: 'It has already failed this request.', fr: 'Il a déjà échoué sur cette requête.' },
} as const satisfies Record<string, Sentence>;

/** Why a provider was chosen, what a trace notes, and what a role does with a request now. */
export const ROUTING = {
  copy: {
    en: 'It stood idle and would finish the last chunk sooner.',
    fr: 'Il était libre et finirait plus tôt le dernier morceau.',
  },
  affinity: {
    en: 'It answered this conversation last and still holds its prefix.',
    fr: 'Il a servi cette conversation en dernier et en garde le début.',
  },
  only_free: { en: 'It was the only one with a free slot.', fr: 'Lui seul avait une place libre.' },
  loaded: {
    en: 'Others with a free slot would have had to load the model first.',
    fr: 'D’autres, libres aussi, auraient d’abord dû charger le modèle.',
  },
  weight: {
    en: 'Its turn by weight among those with a free slot.',
    fr: 'Son tour, selon les poids, parmi ceux qui avaient une place.',
  },
  spill_no_local: {
    en: 'No local provider could serve it.',
    fr: 'Aucun fournisseur local ne pouvait la servir.',
  },
  spill_wait_over_threshold: {
    en: 'The estimated local wait was over the threshold.',
    fr: 'L’attente locale estimée dépassait le seuil.',
  },
  spill_waited: { en: 'It had waited as long as the threshold.', fr: 'Elle avait attendu jusqu’au seuil.' },
  spill_local_failed: { en: 'The local attempt failed.', fr: 'La tentative locale a échoué.' },
  disabled: { en: 'Switched off: requests are refused.', fr: 'Désactivé : les requêtes sont refusées.' },
  unfounded: { en: 'No vector space yet:', fr: 'Pas encore d’espace vectoriel.' },
  founding: {
    en: 'Its vector space is being founded.',
    fr: 'Son espace vectoriel est en cours de fondation.',
  },
  anchor_lost: {
    en: 'The reference vectors of its space are lost. Import the space.',
    fr: 'Les vecteurs de référence de son espace sont perdus. Importez l’espace.',
  },
  local: {
    en: 'Local machines only; nothing leaves the network.',
    fr: 'Machines locales uniquement ; rien ne quitte le réseau.',
  },
  cloud: { en: 'The cloud only.', fr: 'Le cloud uniquement.' },
  aggregate: {
    en: 'Local machines and the cloud pull from one queue; local ones come first.',
    fr: 'Machines locales et cloud puisent dans une même file ; les locales d’abord.',
  },
  backup: {
    en: 'Local first; to the cloud when the wait would pass {waitMs}.',
    fr: 'Local d’abord ; vers le cloud si l’attente devait dépasser {waitMs}.',
  },
  noted_pass: {
    en: '{model} on {name}: pass, checked {checkedOnMs}, before it was used.',
    fr: '{model} sur {name} : contrôle réussi, {checkedOnMs}, avant d’être utilisé.',
  },
  noted_reduced: {
    en: '{model} on {name}: pass-reduced, checked {checkedOnMs}, before it was used.',
    fr: '{model} sur {name} : contrôle réduit réussi, {checkedOnMs}, avant d’être utilisé.',
  },
  noted_other: {
    en: '{model} on {name}: {kind}, checked {checkedOnMs}, before it was used.',
    fr: '{model} sur {name} : {kind}, contrôlé {checkedOnMs}, avant d’être utilisé.',
  },
  no_vectors: {
    en: '{role} has no vectors: dimension, threshold and cutDimensions do not apply.',
    fr: '{role} n’a pas de vecteurs : dimension, threshold et cutDimensions ne s’appliquent pas.',
  },
  cut_too_wide: {
    en: 'cutDimensions must be below the width {width}; {cut} is not.',
    fr: 'cutDimensions doit rester sous la dimension {width} ; {cut} ne l’est pas.',
  },
  found_two_widths: {
    en: 'The patch wants {dimension} numbers per vector and the founding {width}. Send one of the two.',
    fr: 'Le changement veut {dimension} nombres par vecteur et la fondation {width}. Envoyez l’un des deux.',
  },
  models_absent: {
    en: 'No machine serves {models} now. The role gets no work there until one does; check the spelling under the field.',
    fr: 'Aucune machine ne sert {models} en ce moment. Le rôle n’y reçoit aucun travail d’ici là ; vérifiez l’orthographe sous le champ.',
  },
  models_misfit: {
    en: 'In the space of this role {models} did not pass, so it gets no text. To use it, found a space from it on the Gate page, which means rebuilding every index.',
    fr: 'Dans l’espace de ce rôle, {models} n’a pas passé le contrôle et ne reçoit aucun texte. Pour l’utiliser, fondez un espace avec lui sur la page Contrôle : chaque index sera à reconstruire.',
  },
  no_cloud_passed: {
    en: 'No cloud encoder has passed in the space of this role. Pin an upstream that passes, or confirm a new space, which means rebuilding the index.',
    fr: 'Aucun encodeur du cloud n’a passé le contrôle dans l’espace de ce rôle. Épinglez un hébergeur qui le passe, ou confirmez un nouvel espace : l’index sera à reconstruire.',
  },
  no_local_passed: {
    en: 'The space of this role comes from the cloud and no local encoder has passed in it. Serve the same model locally, or confirm a new space, which means rebuilding the index.',
    fr: 'L’espace de ce rôle vient du cloud et aucun encodeur local n’y a passé le contrôle. Servez le même modèle en local, ou confirmez un nouvel espace : l’index sera à reconstruire.',
  },
} as const satisfies Record<string, Sentence>;
