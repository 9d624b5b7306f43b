import type { Message } from './type.ts';

/**
 * Reasons that the control plane gives, by their code: why a provider does not take work, why it was chosen, what a role does now,
 * how keys stand. The English is the control plane's own, here for whoever translates; figures come as `params`.
 */
export const reasons = {
  'reason.role_disabled': { en: 'The role is switched off.', fr: 'Le rôle est désactivé.' },
  'reason.other_model': {
    en: 'It serves another model than the one asked for.',
    fr: 'Il sert un autre modèle que celui demandé.',
  },
  'reason.policy_local': {
    en: 'The request may not leave the network and this provider is in the cloud.',
    fr: 'La requête ne doit pas quitter le réseau et ce fournisseur est dans le cloud.',
  },
  'reason.policy_cloud': {
    en: 'The request goes to the cloud only and this provider is local.',
    fr: 'La requête va uniquement au cloud et ce fournisseur est local.',
  },
  'reason.model_absent': { en: 'The model is not on the machine.', fr: 'Le modèle n’est pas sur la machine.' },
  'reason.context_too_small': {
    en: 'Prompt and answer do not fit its context window.',
    fr: 'La question et la réponse ne tiennent pas dans sa fenêtre.',
  },
  'reason.below_speed_floor': {
    en: 'It is slower than the floor of tokens per second set for the role.',
    fr: 'Il est plus lent que le minimum de jetons par seconde fixé pour le rôle.',
  },
  'reason.no_upstream_pin': {
    en: 'Cloud embeddings need a pinned upstream and none is pinned.',
    fr: 'Les vecteurs du cloud demandent un fournisseur épinglé et aucun ne l’est.',
  },
  'reason.verdict_failed': {
    en: 'Its vectors did not pass the check for this space.',
    fr: 'Ses vecteurs n’ont pas passé le contrôle de cet espace.',
  },
  'reason.verdict_reduced': {
    en: 'It passed only the reduced check, which does not count in a locally founded space.',
    fr: 'Il n’a passé que le contrôle réduit, qui ne compte pas dans un espace fondé localement.',
  },
  'reason.probe_failed': {
    en: 'The check of its vectors could not be completed; it is repeated.',
    fr: 'Le contrôle de ses vecteurs n’a pas pu aboutir ; il est répété.',
  },
  'reason.unverified': {
    en: 'Its vectors have not been checked for this space yet.',
    fr: 'Ses vecteurs n’ont pas encore été contrôlés pour cet espace.',
  },
  'reason.node_draining': {
    en: 'Its machine is draining: running work ends, nothing new starts.',
    fr: 'Sa machine se vide : le travail en cours se termine, rien de nouveau ne commence.',
  },
  'reason.node_maintenance': { en: 'Its machine is under maintenance.', fr: 'Sa machine est en maintenance.' },
  'reason.node_error': { en: 'Its machine reports an error.', fr: 'Sa machine signale une erreur.' },
  'reason.node_unreachable': { en: 'Its machine cannot be reached.', fr: 'Sa machine est injoignable.' },
  'reason.node_unknown': {
    en: 'The state of its machine is not known yet, as after sleep.',
    fr: 'L’état de sa machine n’est pas encore connu, comme après une veille.',
  },
  'reason.node_silent': {
    en: 'Its machine has not answered for 3 seconds.',
    fr: 'Sa machine ne répond plus depuis 3 secondes.',
  },
  'reason.engine_unreachable': {
    en: 'Its engine does not answer its probes.',
    fr: 'Son moteur ne répond pas aux sondes.',
  },
  'reason.cloud_paused': { en: 'The cloud is paused by the operator.', fr: 'Le cloud est suspendu par l’opérateur.' },
  'reason.cloud_off': {
    en: 'The cloud account cannot be used now: credit, key or limit.',
    fr: 'Le compte cloud est inutilisable pour l’instant : crédit, clé ou limite.',
  },
  'reason.key_missing': { en: 'No agent holds the cloud key.', fr: 'La clé cloud manque.' },
  'reason.key_stale': {
    en: 'Its agent holds an older cloud key than the newest push.',
    fr: 'Son agent tient une clé plus ancienne que la dernière envoyée.',
  },
  'reason.spend_cap': { en: 'A spend cap has been reached.', fr: 'Un plafond de dépense est atteint.' },
  'reason.free_tier_spent': {
    en: 'The free-tier limit of the day is used up.',
    fr: 'La limite gratuite du jour est épuisée.',
  },
  'reason.cooling': {
    en: 'It said that it is busy and is left alone for a moment.',
    fr: 'Il s’est dit occupé ; on le laisse tranquille un moment.',
  },
  'reason.parked': {
    en: 'It failed twice in a row or fell silent and is parked until its next trial.',
    fr: 'Il a échoué deux fois de suite ou s’est tu ; il attend son prochain essai.',
  },
  'reason.already_tried': {
    en: 'It has already failed this request.',
    fr: 'Il a déjà échoué sur cette requête.',
  },
  'reason.copy': {
    en: 'It stood idle and would finish the last chunk sooner.',
    fr: 'Il était libre et finirait plus tôt le dernier morceau.',
  },
  'reason.affinity': {
    en: 'It answered this conversation last and still holds its prefix.',
    fr: 'Il a servi cette conversation en dernier et en garde le début.',
  },
  'reason.only_free': {
    en: 'It was the only one with a free slot.',
    fr: 'Lui seul avait une place libre.',
  },
  'reason.loaded': {
    en: 'Others with a free slot would have had to load the model first.',
    fr: 'D’autres, libres aussi, auraient d’abord dû charger le modèle.',
  },
  'reason.weight': {
    en: 'Its turn by weight among those with a free slot.',
    fr: 'Son tour, selon les poids, parmi ceux qui avaient une place.',
  },
  'reason.spill_no_local': {
    en: 'No local provider could serve it.',
    fr: 'Aucun fournisseur local ne pouvait la servir.',
  },
  'reason.spill_wait_over_threshold': {
    en: 'The estimated local wait was over the threshold.',
    fr: 'L’attente locale estimée dépassait le seuil.',
  },
  'reason.spill_waited': {
    en: 'It had waited as long as the threshold.',
    fr: 'Elle avait attendu jusqu’au seuil.',
  },
  'reason.spill_local_failed': { en: 'The local attempt failed.', fr: 'La tentative locale a échoué.' },
  'reason.disabled': { en: 'Switched off: requests are refused.', fr: 'Désactivé : les requêtes sont refusées.' },
  'reason.founding': {
    en: 'Its vector space is being founded.',
    fr: 'Son espace vectoriel est en cours de fondation.',
  },
  'reason.anchor_lost': {
    en: 'The reference vectors of its space are lost. Import the space.',
    fr: 'Les vecteurs de référence de son espace sont perdus. Importez l’espace.',
  },
  'reason.local': {
    en: 'Local machines only; nothing leaves the network.',
    fr: 'Machines locales uniquement ; rien ne quitte le réseau.',
  },
  'reason.cloud': { en: 'The cloud only.', fr: 'Le cloud uniquement.' },
  'reason.aggregate': {
    en: 'Local machines and the cloud pull from one queue; local ones come first.',
    fr: 'Machines locales et cloud puisent dans une même file ; les locales d’abord.',
  },
  'reason.backup': {
    en: 'Local first; to the cloud when the wait would pass {time}.',
    fr: 'Local d’abord ; vers le cloud si l’attente devait dépasser {time}.',
  },
  'reason.cloud_on': {
    en: 'Agents that hold the key: {agents}.',
    fr: 'Agents qui tiennent la clé : {agents}.',
  },
  'reason.key_none': { en: 'No key was given yet.', fr: 'Aucune clé n’a encore été donnée.' },
  'reason.no_key_held': {
    en: 'No agent holds the OpenRouter key. Enter it on the Keys page.',
    fr: 'Aucun agent ne tient la clé OpenRouter. Saisissez-la sur la page Clés.',
  },
  'reason.no_agent': {
    en: 'No agent is there that could use the cloud.',
    fr: 'Aucun agent ne peut utiliser le cloud.',
  },
  'reason.key_pending': {
    en: 'The key was sent; the agent has not confirmed it yet.',
    fr: 'La clé est envoyée ; l’agent ne l’a pas encore confirmée.',
  },
  'reason.key_refused': {
    en: 'OpenRouter or the agent does not accept this key. Enter another one.',
    fr: 'OpenRouter ou l’agent refuse cette clé. Saisissez-en une autre.',
  },
  'reason.key_unreachable': { en: 'The machine is away.', fr: 'La machine est absente.' },
  'reason.key_works': { en: 'OpenRouter accepts the key.', fr: 'OpenRouter accepte la clé.' },
  'reason.key_does_not_work': {
    en: 'OpenRouter does not accept the key, or could not be reached.',
    fr: 'OpenRouter refuse la clé ou est injoignable.',
  },
  'reason.no_keyring': {
    en: 'Agents forget the key when they restart. One that is started with SWITCHYARD_KEYRING can keep it encrypted.',
    fr: 'Les agents oublient la clé à leur redémarrage. Un agent lancé avec SWITCHYARD_KEYRING peut la garder chiffrée.',
  },
  'reason.rate_trusted': {
    en: 'The reported rate is kept to, counting starts in any 61 s.',
    fr: 'Le débit annoncé est respecté, compté sur toute période de 61 s.',
  },
  'reason.rate_not_trusted': {
    en: 'The reported rate is a left-over of a retired field and limits nothing.',
    fr: 'Le débit annoncé vient d’un champ abandonné et ne limite rien.',
  },
  'reason.budget_full': {
    en: 'All permits have been in use for 10 min with work waiting, and nothing was refused.',
    fr: 'Tous les permis servent depuis 10 min, du travail attend et rien n’a été refusé.',
  },
  'reason.cloud_no_key': {
    en: 'A role works in the cloud alone and no agent holds the OpenRouter key.',
    fr: 'Un rôle ne travaille que dans le cloud et aucun agent ne tient la clé OpenRouter.',
  },
  'reason.cloud_key_missing': {
    en: 'This agent holds no key, for example after a restart. Enter the key again.',
    fr: 'Cet agent ne tient pas de clé, par exemple après un redémarrage. Saisissez-la de nouveau.',
  },
  'reason.cloud_key_stale': {
    en: 'This agent holds an older key and stays idle. Enter the newest key for it too.',
    fr: 'Cet agent tient une clé plus ancienne et reste inactif. Saisissez-lui aussi la nouvelle.',
  },
  'reason.cloud_refused': {
    en: 'OpenRouter or the agent does not accept this key. Enter another one.',
    fr: 'OpenRouter ou l’agent refuse cette clé. Saisissez-en une autre.',
  },
  'health.store_degraded': {
    en: 'The database cannot be written',
    fr: 'La base de données n’est pas accessible en écriture',
  },
  'health.store_problem': {
    en: 'Something about the data folder',
    fr: 'Un point à voir dans le dossier de données',
  },
  'health.node_degraded': { en: '{name} is degraded', fr: '{name} est dégradée' },
  'health.node_unreachable': { en: '{name} is unreachable', fr: '{name} est injoignable' },
  'health.node_unknown': { en: '{name} is unknown', fr: 'L’état de {name} est inconnu' },
  'health.node_error': { en: '{name} is error', fr: '{name} est en erreur' },
  'health.space_anchor_lost': { en: 'The space of {role} is lost', fr: 'L’espace de {role} est perdu' },
  'health.space_unfounded': { en: '{role} needs a founder', fr: '{role} attend un fondateur' },
  'health.gate': { en: '{model} on {name} gets no texts', fr: '{model} sur {name} ne reçoit aucun texte' },
  'health.cloud_no_key': { en: 'No cloud key yet', fr: 'Pas encore de clé cloud' },
  'health.cloud_key_missing': { en: 'Key missing on {name}', fr: 'Clé absente sur {name}' },
  'health.cloud_key_stale': { en: 'Old key on {name}', fr: 'Clé ancienne sur {name}' },
  'health.cloud_refused': { en: 'Key refused for {name}', fr: 'Clé refusée pour {name}' },
  'health.cloud_off': { en: 'The cloud account cannot be used', fr: 'Le compte cloud est inutilisable' },
} as const satisfies Record<string, Message>;
