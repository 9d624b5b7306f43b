import type { Sentence } from './sentence.ts';

/** What the gate found, and what an operator does about it. */
export const GATE = {
  gate_pass: {
    en: "Its vectors agree with the space's: smallest cosine {minCosine}.",
    fr: 'Ses vecteurs s’accordent avec ceux de l’espace : plus petit cosinus {minCosine}.',
  },
  gate_pass_reduced: {
    en: 'The only upstream of this model: there is no peer to compare it with. Width, pin, repetition and batches were checked, and it is compared with its own first vectors. Pin a second upstream to have it compared.',
    fr: 'Seul hébergeur de ce modèle : il n’y a pas de pair auquel le comparer. Dimension, épinglage, répétition et lots ont été contrôlés, et il est comparé à ses propres premiers vecteurs. Épinglez un second hébergeur pour qu’il soit comparé.',
  },
  gate_scale: {
    en: "Same directions, another length: norms differ by up to {offPercent}. Switch on the engine's normalisation, or found a space that normalises.",
    fr: 'Mêmes directions, autre longueur : les normes diffèrent jusqu’à {offPercent}. Activez la normalisation du moteur, ou fondez un espace qui normalise.',
  },
  gate_scale_unknown: {
    en: "Same directions, another length: norms differ by up to more than can be said. Switch on the engine's normalisation, or found a space that normalises.",
    fr: 'Mêmes directions, autre longueur : les normes diffèrent plus qu’on ne peut dire. Activez la normalisation du moteur, ou fondez un espace qui normalise.',
  },
  gate_batch: {
    en: 'A text sent in a batch gives another vector than sent alone (cosine {cosine}). Update the engine, or set its batch size to 1.',
    fr: 'Un texte envoyé dans un lot donne un autre vecteur que seul (cosinus {cosine}). Mettez le moteur à jour, ou réglez sa taille de lot à 1.',
  },
  gate_collapsed: {
    en: 'Different texts give one vector ("{first}" and "{second}", cosine {cosine}). The model or its tokeniser is broken: fetch it again or convert it anew.',
    fr: 'Des textes différents donnent un même vecteur (« {first} » et « {second} », cosinus {cosine}). Le modèle ou son tokeniseur est abîmé : téléchargez-le ou convertissez-le de nouveau.',
  },
  gate_truncates: {
    en: 'It answers a text over its limit without having read all of it. Switch off truncation at the engine, or raise its window above the limit of the space.',
    fr: 'Il répond à un texte plus long que sa limite sans l’avoir lu en entier. Désactivez la troncature dans le moteur, ou relevez sa fenêtre au-dessus de la limite de l’espace.',
  },
  gate_drifted: {
    en: 'It no longer gives its own first vectors (smallest cosine {cosine}). It is parked; rows written since its last good check are in doubt. Find out what changed, and index those rows again.',
    fr: 'Il ne donne plus ses propres premiers vecteurs (plus petit cosinus {cosine}). Il est écarté ; les lignes écrites depuis son dernier bon contrôle sont douteuses. Cherchez ce qui a changé, et indexez de nouveau ces lignes.',
  },
  gate_unrepeatable: {
    en: 'The same text twice gives two vectors (cosine {cosine}). Update the engine or its drivers; look for several servers behind one address.',
    fr: 'Un même texte envoyé deux fois donne deux vecteurs (cosinus {cosine}). Mettez à jour le moteur ou ses pilotes ; cherchez plusieurs serveurs derrière une même adresse.',
  },
  gate_unchecked: { en: 'Not checked yet.', fr: 'Pas encore contrôlé.' },
  gate_unusable: {
    en: 'It gave a vector that is zero or not finite (probe "{probe}"). Update the engine or fetch the model again.',
    fr: 'Il a donné un vecteur nul ou non fini (sonde « {probe} »). Mettez le moteur à jour ou téléchargez de nouveau le modèle.',
  },
  gate_centred: {
    en: 'Less what all texts share, its vectors point elsewhere: smallest centred cosine {cosine}, needed above 0.98.',
    fr: 'Sans ce que tous les textes partagent, ses vecteurs pointent ailleurs : plus petit cosinus centré {cosine}, il faut plus de 0,98.',
  },
  gate_misplaced: {
    en: '{count} {count|probe lies|probes lie} nearer to another text\'s reference than to {count|its|their} own, "{probe}" first.',
    fr: '{count} {count|sonde est|sondes sont} plus proches de la référence d’un autre texte que de la leur, « {probe} » d’abord.',
  },
  gate_incompatible: {
    en: 'Its vectors are not the space\'s: smallest cosine {minCosine} at "{probe}".',
    fr: 'Ses vecteurs ne sont pas ceux de l’espace : plus petit cosinus {minCosine}, sonde « {probe} ».',
  },
  gate_serve_founding: {
    en: 'Serve the founding model with the same pooling, prefix and at least Q8_0 weights, or found a space of its own.',
    fr: 'Servez le modèle fondateur avec la même agrégation (pooling), le même préfixe et des poids d’au moins Q8_0, ou fondez-lui son propre espace.',
  },
  gate_width: {
    en: 'It gives {width} numbers, the space has {expected}. This is another model, or the engine cuts; serve the founding model or found a space of its own.',
    fr: 'Il donne {width} nombres, l’espace en a {expected}. C’est un autre modèle, ou le moteur coupe ; servez le modèle fondateur ou fondez-lui son propre espace.',
  },
  gate_short: {
    en: 'It refuses texts that the space promises to read (probe "{probe}", limit {limit} tokens). Start the engine with a larger window (llama.cpp: -c and -ub, Ollama: num_ctx), or found a space with this limit.',
    fr: 'Il refuse des textes que l’espace promet de lire (sonde « {probe} », limite {limit} jetons). Lancez le moteur avec une fenêtre plus grande (llama.cpp : -c et -ub, Ollama : num_ctx), ou fondez un espace avec cette limite.',
  },
  gate_no_pin: {
    en: 'Two upstreams of one model do not promise the same vectors. Pin one upstream for this role.',
    fr: 'Deux hébergeurs d’un même modèle ne promettent pas les mêmes vecteurs. Épinglez un hébergeur pour ce rôle.',
  },
  gate_other_upstream: {
    en: 'Another upstream than the pinned one answered. Check the pin: it must name exactly one upstream.',
    fr: 'Un autre hébergeur que celui épinglé a répondu. Vérifiez l’épinglage : il doit désigner exactement un hébergeur.',
  },
  gate_is_founder: { en: 'It founded this space.', fr: 'Il a fondé cet espace.' },
  gate_busy: {
    en: 'The engine stayed busy while it was to be checked.',
    fr: 'Le moteur est resté occupé au moment du contrôle.',
  },
  gate_unreachable: {
    en: 'The engine could not be reached while it was to be checked.',
    fr: 'Le moteur était injoignable au moment du contrôle.',
  },
  gate_timeout: {
    en: 'The engine did not answer a probe in time.',
    fr: 'Le moteur n’a pas répondu à temps à une sonde.',
  },
  gate_refused: {
    en: 'The engine refused a probe that every encoder must take. Check that it serves embeddings of this model.',
    fr: 'Le moteur a refusé une sonde que tout encodeur doit accepter. Vérifiez qu’il sert les vecteurs de ce modèle.',
  },
  gate_no_vector: {
    en: 'The engine answered a probe with something that is not a vector. Check its pooling, or update it.',
    fr: 'Le moteur a répondu à une sonde par autre chose qu’un vecteur. Vérifiez son agrégation (pooling), ou mettez-le à jour.',
  },
  gate_count: {
    en: 'The engine answered with another number of vectors than texts. Update it, or set its batch size to 1.',
    fr: 'Le moteur n’a pas rendu autant de vecteurs que de textes. Mettez-le à jour, ou réglez sa taille de lot à 1.',
  },
  gate_engine: {
    en: 'The engine failed on a probe. Its own log says why.',
    fr: 'Le moteur a échoué sur une sonde. Son propre journal dit pourquoi.',
  },
  gate_moved: {
    en: 'The engine kept changing while it was checked: several processes answer at its address, it restarts, or it ends every connection after its answer.',
    fr: 'Le moteur n’a cessé de changer pendant le contrôle : plusieurs processus répondent à son adresse, il redémarre, ou il ferme chaque connexion après sa réponse.',
  },
  gate_unmarked: {
    en: 'Nothing tells one process of this engine from another, so a verdict would hold for neither.',
    fr: 'Rien ne distingue un processus de ce moteur d’un autre : un verdict ne vaudrait pour aucun.',
  },
  gate_again_by_itself: { en: 'It is checked again by itself.', fr: 'Il sera contrôlé de nouveau automatiquement.' },
  gate_rechecked_changed: {
    en: 'Its process changed while it was checked. It is being checked again.',
    fr: 'Son processus a changé pendant le contrôle. Il est de nouveau contrôlé.',
  },
  gate_rechecked_unknown: {
    en: 'It is not the process that was checked. It is being checked again.',
    fr: 'Ce n’est pas le processus qui a été contrôlé. Il est de nouveau contrôlé.',
  },
  gate_rechecked_other: {
    en: 'Its process, version or model changed. It is being checked again.',
    fr: 'Son processus, sa version ou son modèle a changé. Il est de nouveau contrôlé.',
  },
  gate_rechecked_threshold: {
    en: 'The threshold of its role was raised. It is being checked again.',
    fr: 'Le seuil de son rôle a été relevé. Il est de nouveau contrôlé.',
  },
  gate_rechecked_policy: {
    en: 'The policy of its role changed. It is being checked again.',
    fr: 'La politique de son rôle a changé. Il est de nouveau contrôlé.',
  },
  gate_rechecked_process: {
    en: 'Another process answered than the one that passed. It is being checked.',
    fr: 'Un autre processus a répondu que celui qui avait passé le contrôle. Il est en cours de contrôle.',
  },
  gate_rechecked_demand: {
    en: 'It is being checked again on demand.',
    fr: 'Il est de nouveau contrôlé, à la demande.',
  },
  drift_rows: {
    en: '{rows} {rows|row was|rows were} written since its last good check; see gate.affected.',
    fr: '{rows} {rows|ligne écrite|lignes écrites} depuis son dernier bon contrôle ; voir gate.affected.',
  },
  space_founded: {
    en: 'Space {space} ({width} wide) was founded.',
    fr: 'L’espace {space} (dimension {width}) a été fondé.',
  },
  space_imported: {
    en: 'Space {space} ({width} wide) was imported.',
    fr: 'L’espace {space} (dimension {width}) a été importé.',
  },
  space_changed: {
    en: 'Space {space} ({width} wide) was changed.',
    fr: 'L’espace {space} (dimension {width}) a été modifié.',
  },
  space_retired: {
    en: 'Space {space} ({width} wide) was retired.',
    fr: 'L’espace {space} (dimension {width}) a été retiré.',
  },
  gate_store_failing: {
    en: 'Findings of the gate cannot be stored now; they are kept in memory.',
    fr: 'Les résultats du contrôle ne peuvent pas être enregistrés ; ils sont gardés en mémoire.',
  },
  gate_store_recovered: {
    en: 'Findings of the gate are stored again; {lost} ledger {lost|range was|ranges were} lost.',
    fr: 'Les résultats du contrôle sont de nouveau enregistrés ; {lost} {lost|plage perdue|plages perdues} dans le registre.',
  },
} as const satisfies Record<string, Sentence>;

/** Why a space is not founded, and why an encoder cannot found one. */
export const FOUNDING = {
  cannot_found: { en: 'This encoder cannot found a space.', fr: 'Cet encodeur ne peut pas fonder d’espace.' },
  cannot_found_now: { en: 'It cannot found now:', fr: 'Il ne peut rien fonder pour l’instant :' },
  only_candidate: {
    en: 'The only candidate cannot found now:',
    fr: 'Le seul candidat ne peut rien fonder pour l’instant :',
  },
  found_reads_little: {
    en: 'It reads only {limit} {limit|token|tokens}.',
    fr: 'Il ne lit que {limit} {limit|jeton|jetons}.',
  },
  found_short: {
    en: 'It says that it reads {limit} tokens and refused probe "{probe}".',
    fr: 'Il dit lire {limit} jetons et a refusé la sonde « {probe} ».',
  },
  hindered_draining: { en: 'its machine is draining.', fr: 'sa machine se vide.' },
  hindered_unreachable: { en: 'its machine is unreachable.', fr: 'sa machine est injoignable.' },
  hindered_unknown: { en: 'its machine is unknown.', fr: 'l’état de sa machine est inconnu.' },
  hindered_maintenance: { en: 'its machine is in maintenance.', fr: 'sa machine est en maintenance.' },
  hindered_error: { en: 'its machine is in error.', fr: 'sa machine est en erreur.' },
  hindered_engine: { en: 'its engine does not answer.', fr: 'son moteur ne répond pas.' },
  hindered_absent: { en: 'the model is not there.', fr: 'le modèle n’est pas là.' },
  hindered_width: {
    en: 'it gives {width} numbers and the role is set to {expected}.',
    fr: 'il donne {width} nombres et le rôle est réglé sur {expected}.',
  },
  hindered_unready: { en: 'it is not ready.', fr: 'il n’est pas prêt.' },
  found_choose: {
    en: '{count} encoders could found this space. Choose one: it decides what the index is.',
    fr: '{count} encodeurs pourraient fonder cet espace. Choisissez-en un : il décide de ce qu’est l’index.',
  },
  found_none_named: {
    en: 'None of the models named for this role is on any machine.',
    fr: 'Aucun des modèles désignés pour ce rôle n’est sur une machine.',
  },
  found_other_wanted: {
    en: 'The role is set up for another encoder than the built-in one, and that is not there yet.',
    fr: 'Le rôle est réglé pour un autre encodeur que celui intégré, et celui-là n’est pas encore là.',
  },
  found_nobody: {
    en: 'No encoder is there. Start one on a machine of the fleet, or set an upstream.',
    fr: 'Il n’y a aucun encodeur. Lancez-en un sur une de vos machines, ou épinglez un hébergeur.',
  },
  found_no_settings: {
    en: 'The settings of this role are not known yet.',
    fr: 'Les réglages de ce rôle ne sont pas encore connus.',
  },
  found_was_retired: {
    en: 'The space of this role was retired. Found a new one when its index is rebuilt.',
    fr: 'L’espace de ce rôle a été retiré. Fondez-en un nouveau quand son index sera reconstruit.',
  },
  found_not_begun: { en: 'Founding has not begun yet.', fr: 'La fondation n’a pas encore commencé.' },
  found_not_stored: { en: 'The space could not be stored.', fr: 'L’espace n’a pas pu être enregistré.' },
  found_replaced: {
    en: 'Another founding of this role was begun.',
    fr: 'Une autre fondation de ce rôle a été lancée.',
  },
  found_not_admitted: {
    en: 'This encoder is not one that the policy and models of the role admit, or its upstream is not pinned.',
    fr: 'La politique ou les modèles du rôle n’admettent pas cet encodeur, ou son hébergeur n’est pas épinglé.',
  },
} as const satisfies Record<string, Sentence>;
