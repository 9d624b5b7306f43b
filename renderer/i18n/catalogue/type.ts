/** One message in every language of the console. `{name}` is replaced; both languages name the same. */
export interface Message {
  readonly en: string;
  readonly fr: string;
}
