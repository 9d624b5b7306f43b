import type { Sentence } from './sentence.ts';

/** Who holds the key, how many permits there are and why, what OpenRouter refused. */
export const CLOUD = {
  no_agent: {
    en: 'No agent is there that could use the cloud.',
    fr: 'Aucun agent ne peut utiliser le cloud.',
  },
  key_none: { en: 'No key was given yet.', fr: 'Aucune clé n’a encore été donnée.' },
  key_forgotten: { en: 'The key was forgotten, as asked.', fr: 'La clé a été oubliée, comme demandé.' },
  key_pending: {
    en: 'The key was sent; the agent has not confirmed it yet.',
    fr: 'La clé est envoyée ; l’agent ne l’a pas encore confirmée.',
  },
  no_key_held: {
    en: 'No agent holds the OpenRouter key. Enter it on the Keys page.',
    fr: 'Aucun agent ne tient la clé OpenRouter. Saisissez-la sur la page Clés.',
  },
  cloud_on: {
    en: 'The key is held by {agents} {agents|agent|agents}.',
    fr: 'La clé est tenue par {agents} {agents|agent|agents}.',
  },
  cloud_key_missing: {
    en: 'This agent holds no key, for example after a restart. Enter the key again.',
    fr: 'Cet agent ne tient pas de clé, par exemple après un redémarrage. Saisissez-la de nouveau.',
  },
  cloud_key_stale: {
    en: 'This agent holds an older key and stays idle. Enter the newest key for it too.',
    fr: 'Cet agent tient une clé plus ancienne et reste inactif. Saisissez-lui aussi la nouvelle.',
  },
  cloud_refused: {
    en: 'OpenRouter or the agent does not accept this key. Enter another one.',
    fr: 'OpenRouter ou l’agent refuse cette clé. Saisissez-en une autre.',
  },
  key_unreachable: { en: 'The machine is away.', fr: 'La machine est absente.' },
  key_works: { en: 'OpenRouter accepts the key.', fr: 'OpenRouter accepte la clé.' },
  key_does_not_work: {
    en: 'OpenRouter does not accept the key, or could not be reached.',
    fr: 'OpenRouter refuse la clé ou est injoignable.',
  },
  no_keyring: {
    en: 'Agents forget the key when they restart. One that is started with SWITCHYARD_KEYRING can keep it encrypted.',
    fr: 'Les agents oublient la clé à leur redémarrage. Un agent lancé avec SWITCHYARD_KEYRING peut la garder chiffrée.',
  },
  cloud_no_key: {
    en: 'A role works in the cloud alone and no agent holds the OpenRouter key.',
    fr: 'Un rôle ne travaille que dans le cloud et aucun agent ne tient la clé OpenRouter.',
  },
  enter_key_again: { en: 'Enter the key again.', fr: 'Saisissez de nouveau la clé.' },
  rate_trusted: {
    en: 'The reported rate is kept to, counting starts in any 61 s.',
    fr: 'Le débit annoncé est respecté, compté sur toute période de 61 s.',
  },
  rate_not_trusted: {
    en: 'The reported rate is a left-over of a retired field and limits nothing.',
    fr: 'Le débit annoncé vient d’un champ abandonné et ne limite rien.',
  },
  budget_full: {
    en: 'All permits have been in use for 10 min with work waiting, and nothing was refused.',
    fr: 'Tous les permis servent depuis 10 min, du travail attend et rien n’a été refusé.',
  },

  budget_paused: {
    en: 'The cloud is paused by the operator.',
    fr: 'L’opérateur a suspendu le cloud.',
  },
  budget_spent: {
    en: 'The key may spend nothing more. Free models keep {permits} {permits|permit|permits}.',
    fr: 'La clé ne peut plus rien dépenser. Les modèles gratuits gardent {permits} permis.',
  },
  budget_cooling: {
    en: 'Cooling until {untilAtMs}: OpenRouter limited the account. Then',
    fr: 'En pause jusqu’à {untilAtMs} : OpenRouter a limité le compte. Ensuite',
  },
  budget_cooling_open: {
    en: 'Cooling: OpenRouter limited the account. Then',
    fr: 'En pause : OpenRouter a limité le compte. Ensuite',
  },
  permits_override: {
    en: '{permits} {permits|permit|permits}, set by the operator.',
    fr: '{permits} permis, {permits|fixé|fixés} par l’opérateur.',
  },
  permits_rate: {
    en: '{permits} {permits|permit|permits}: {perMinute} requests per minute at {callMs} per call.',
    fr: '{permits} permis : {perMinute} requêtes par minute, à {callMs} par appel.',
  },
  permits_rate_assumed: {
    en: '{permits} {permits|permit|permits}: {perMinute} requests per minute, {callMs} per call assumed until one is measured.',
    fr: '{permits} permis : {perMinute} requêtes par minute, à {callMs} par appel (supposé, rien n’est encore mesuré).',
  },
  permits_credit: {
    en: '{permits} {permits|permit|permits}: the key may still spend {creditUsd}.',
    fr: '{permits} permis : la clé peut encore dépenser {creditUsd}.',
  },
  permits_default: {
    en: '{permits} {permits|permit|permits}: nothing could be discovered about the account.',
    fr: '{permits} permis : rien n’a pu être découvert sur le compte.',
  },
  permits_of_override: {
    en: '{usable} of {permits} {permits|permit|permits}, set by the operator.',
    fr: '{usable} permis sur {permits}, {permits|fixé|fixés} par l’opérateur.',
  },
  permits_of_rate: {
    en: '{usable} of {permits} {permits|permit|permits}: {perMinute} requests per minute at {callMs} per call.',
    fr: '{usable} permis sur {permits} : {perMinute} requêtes par minute, à {callMs} par appel.',
  },
  permits_of_rate_assumed: {
    en: '{usable} of {permits} {permits|permit|permits}: {perMinute} requests per minute, {callMs} per call assumed until one is measured.',
    fr: '{usable} permis sur {permits} : {perMinute} requêtes par minute, à {callMs} par appel (supposé, rien n’est encore mesuré).',
  },
  permits_of_credit: {
    en: '{usable} of {permits} {permits|permit|permits}: the key may still spend {creditUsd}.',
    fr: '{usable} permis sur {permits} : la clé peut encore dépenser {creditUsd}.',
  },
  permits_of_default: {
    en: '{usable} of {permits} {permits|permit|permits}: nothing could be discovered about the account.',
    fr: '{usable} permis sur {permits} : rien n’a pu être découvert sur le compte.',
  },
  budget_limited: {
    en: 'OpenRouter limited the account; one more after 15 s without a refusal.',
    fr: 'OpenRouter a limité le compte ; un de plus après 15 s sans refus.',
  },
  budget_limited_open: { en: 'OpenRouter limited the account.', fr: 'OpenRouter a limité le compte.' },
  budget_climbing: {
    en: 'Climbing; next step at {nextAtMs}.',
    fr: 'En hausse ; prochain permis à {nextAtMs}.',
  },
  budget_climbing_open: { en: 'Climbing.', fr: 'En hausse.' },
  budget_plateau: {
    en: 'More was refused; next try at {nextAtMs}.',
    fr: 'Au-delà, OpenRouter a refusé ; prochain essai à {nextAtMs}.',
  },
  budget_plateau_open: { en: 'More was refused.', fr: 'Au-delà, OpenRouter a refusé.' },

  budget_cut: {
    en: 'OpenRouter limited the account: {from} {from|permit|permits} became {to}.',
    fr: 'OpenRouter a limité le compte : de {from} permis à {to}.',
  },
  wrong_upstream: {
    en: 'Another upstream than the pinned one has answered for {model}; its answer was thrown away and it gets no work.',
    fr: 'Un autre hébergeur que celui épinglé a répondu pour {model} ; sa réponse est jetée et il ne reçoit plus de travail.',
  },
  credit_exhausted: {
    en: 'OpenRouter refuses paid models.',
    fr: 'OpenRouter refuse les modèles payants.',
  },
  cloud_key_refused: {
    en: 'OpenRouter refuses the key of {name}. Enter another one.',
    fr: 'OpenRouter refuse la clé de {name}. Saisissez-en une autre.',
  },
  free_tier_closed: {
    en: 'The limit of the free models is reached; they rest until it is reset.',
    fr: 'La limite des modèles gratuits est atteinte ; ils attendent sa remise à zéro.',
  },
  cloud_push_refused: {
    en: '{name} could not use the push.',
    fr: '{name} n’a pas pu utiliser la clé envoyée.',
  },
  cloud_push_beyond: {
    en: '{name} reports a number of a push that was never counted here, so it gets no cloud work. Restart its agent, then enter the key again.',
    fr: '{name} annonce un numéro d’envoi jamais compté ici et ne reçoit aucun travail du cloud. Redémarrez son agent, puis saisissez de nouveau la clé.',
  },
  project_caps_unread: {
    en: 'The spending caps of projects cannot be read. No project may spend in the cloud until its cap is set again on the Budget page.',
    fr: 'Les plafonds de dépense des projets sont illisibles. Aucun projet ne peut dépenser dans le cloud avant que son plafond soit de nouveau fixé sur la page Budget.',
  },
  no_key_agent_again: {
    en: 'No agent holds the OpenRouter key. Enter it again on the Keys page.',
    fr: 'Aucun agent ne tient la clé OpenRouter. Saisissez-la de nouveau sur la page Clés.',
  },
  one_key_agent: {
    en: 'Only {name} holds the OpenRouter key. Enter it again to give it to the others.',
    fr: 'Seul {name} tient la clé OpenRouter. Saisissez-la de nouveau pour la donner aux autres.',
  },
} as const satisfies Record<string, Sentence>;

/** What a refusal of OpenRouter means, by the row of `main/budget/sources.ts` that fits it. */
export const REFUSALS = {
  source_content: { en: 'The content was refused by moderation.', fr: 'Le contenu a été refusé par la modération.' },
  source_free_daily: {
    en: 'The daily number of free requests is used up; free models wait for the reset.',
    fr: 'Les requêtes gratuites du jour sont épuisées ; les modèles gratuits attendent la remise à zéro.',
  },
  source_free_minute: {
    en: 'Free models allow 20 requests per minute; they wait for the next minute.',
    fr: 'Les modèles gratuits acceptent 20 requêtes par minute ; ils attendent la minute suivante.',
  },
  source_shared_capacity: {
    en: 'OpenRouter limits this model for everybody; it rests.',
    fr: 'OpenRouter limite ce modèle pour tout le monde ; il est mis au repos.',
  },
  source_admission: {
    en: 'OpenRouter could not check the account in time; the whole account slows down.',
    fr: 'OpenRouter n’a pas pu vérifier le compte à temps ; tout le compte ralentit.',
  },
  source_upstream_pool: {
    en: 'The upstream is full; it rests.',
    fr: 'L’hébergeur est plein ; il est mis au repos.',
  },
  source_in_flight: {
    en: 'The balance is tied up in calls that run; paid calls wait.',
    fr: 'Le solde est engagé dans les appels en cours ; les appels payants attendent.',
  },
  source_credit: {
    en: 'The credit is used up. Add credit at OpenRouter, then resume the cloud.',
    fr: 'Le crédit est épuisé. Ajoutez du crédit chez OpenRouter, puis reprenez le cloud.',
  },
  source_key_limit: {
    en: 'The spending limit of the key is reached. Raise it at OpenRouter or wait for its reset.',
    fr: 'La limite de dépense de la clé est atteinte. Relevez-la chez OpenRouter ou attendez sa remise à zéro.',
  },
  source_guardrail: {
    en: 'A budget guardrail of the OpenRouter account is reached.',
    fr: 'Un garde-fou budgétaire du compte OpenRouter est atteint.',
  },
  source_workspace: {
    en: 'The budget of the OpenRouter workspace is reached.',
    fr: 'Le budget de l’espace de travail OpenRouter est atteint.',
  },
  source_region: {
    en: 'The upstream does not serve this region.',
    fr: 'L’hébergeur ne dessert pas cette région.',
  },
  source_capacity: {
    en: 'No upstream has capacity for this model; it rests.',
    fr: 'Aucun hébergeur n’a de place pour ce modèle ; il est mis au repos.',
  },
  source_provider_limit: {
    en: 'The upstream limits requests; it rests.',
    fr: 'L’hébergeur limite les requêtes ; il est mis au repos.',
  },
  source_account_limit: { en: 'OpenRouter limits the account.', fr: 'OpenRouter limite le compte.' },
  source_unknown_limit: {
    en: 'OpenRouter names a limit unknown here; the model rests.',
    fr: 'OpenRouter indique une limite inconnue ici ; le modèle est mis au repos.',
  },
  source_payment: {
    en: 'OpenRouter asks for payment. Add credit, then resume the cloud.',
    fr: 'OpenRouter demande un paiement. Ajoutez du crédit, puis reprenez le cloud.',
  },
  source_upstream_rejects: {
    en: 'The upstream refuses OpenRouter; it rests.',
    fr: 'L’hébergeur refuse OpenRouter ; il est mis au repos.',
  },
  source_key: {
    en: 'OpenRouter does not accept the key. Enter a valid one.',
    fr: 'OpenRouter refuse la clé. Saisissez-en une valable.',
  },
  source_forbidden: {
    en: 'The key is not allowed to do this. Check its rights at OpenRouter.',
    fr: 'La clé n’y est pas autorisée. Vérifiez ses droits chez OpenRouter.',
  },
  source_overloaded: {
    en: 'The upstream is overloaded or away; it rests.',
    fr: 'L’hébergeur est surchargé ou absent ; il est mis au repos.',
  },
  source_not_offered: {
    en: 'The model or its pinned upstream is not offered now.',
    fr: 'Le modèle ou son hébergeur épinglé n’est pas proposé actuellement.',
  },
  source_upstream_fault: { en: 'The upstream failed; it rests.', fr: 'L’hébergeur a échoué ; il est mis au repos.' },
  source_fault: { en: 'OpenRouter failed.', fr: 'OpenRouter a échoué.' },
  source_request: {
    en: 'The request was refused as malformed.',
    fr: 'La requête a été refusée comme mal formée.',
  },
  source_unknown: {
    en: 'OpenRouter answered with something unknown.',
    fr: 'OpenRouter a répondu quelque chose d’inconnu.',
  },
} as const satisfies Record<string, Sentence>;
