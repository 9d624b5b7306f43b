/** What a tool needs to know; the key is a placeholder unless one was made a moment ago. */
export interface Setup {
  readonly id: string;
  readonly name: string;
  readonly text: string;
}

/** Paste-in set-ups for common tools, with the address, a key and the role that each kind of tool wants. */
export function setups(endpoint: string, key: string): readonly Setup[] {
  const base = `${endpoint}/v1`;
  return [
    {
      id: 'curl',
      name: 'curl',
      text: [
        `curl ${base}/embeddings \\`,
        `  -H "Authorization: Bearer ${key}" \\`,
        '  -H "Content-Type: application/json" \\',
        `  -d '{"model": "embedding", "input": "Who answers?"}'`,
      ].join('\n'),
    },
    {
      id: 'env',
      name: 'OpenAI SDK',
      text: [
        `export OPENAI_BASE_URL=${base}`,
        `export OPENAI_API_KEY=${key}`,
        'export OPENAI_MODEL=code-assistant',
      ].join('\n'),
    },
    {
      id: 'python',
      name: 'Python',
      text: [
        'from openai import OpenAI',
        '',
        `client = OpenAI(base_url="${base}", api_key="${key}")`,
        'answer = client.chat.completions.create(',
        '    model="code-assistant",',
        '    messages=[{"role": "user", "content": "Hello"}],',
        ')',
        'print(answer.choices[0].message.content)',
      ].join('\n'),
    },
    {
      id: 'continue',
      name: 'Continue',
      text: [
        'models:',
        '  - name: Switchyard',
        '    provider: openai',
        '    model: code-assistant',
        `    apiBase: ${base}`,
        `    apiKey: ${key}`,
        '    roles: [chat, edit]',
        '  - name: Switchyard embedding',
        '    provider: openai',
        '    model: code-embedding',
        `    apiBase: ${base}`,
        `    apiKey: ${key}`,
        '    roles: [embed]',
      ].join('\n'),
    },
    {
      id: 'cline',
      name: 'Cline',
      text: [
        'API Provider: OpenAI Compatible',
        `Base URL: ${base}`,
        `API Key: ${key}`,
        'Model ID: code-assistant',
      ].join('\n'),
    },
    {
      id: 'aider',
      name: 'Aider',
      text: [
        `export OPENAI_API_BASE=${base}`,
        `export OPENAI_API_KEY=${key}`,
        'aider --model openai/code-assistant',
      ].join('\n'),
    },
    {
      id: 'openwebui',
      name: 'Open WebUI',
      text: [
        `OPENAI_API_BASE_URL=${base}`,
        `OPENAI_API_KEY=${key}`,
        `RAG_EMBEDDING_ENGINE=openai`,
        `RAG_OPENAI_API_BASE_URL=${base}`,
        `RAG_OPENAI_API_KEY=${key}`,
        'RAG_EMBEDDING_MODEL=embedding',
      ].join('\n'),
    },
    {
      id: 'langchain',
      name: 'LangChain',
      text: [
        'from langchain_openai import ChatOpenAI, OpenAIEmbeddings',
        '',
        `chat = ChatOpenAI(model="code-assistant", base_url="${base}", api_key="${key}")`,
        `vectors = OpenAIEmbeddings(model="embedding", base_url="${base}", api_key="${key}",`,
        '                           check_embedding_ctx_length=False)',
      ].join('\n'),
    },
    {
      id: 'llamaindex',
      name: 'LlamaIndex',
      text: [
        'from llama_index.llms.openai_like import OpenAILike',
        '',
        `llm = OpenAILike(model="code-assistant", api_base="${base}", api_key="${key}",`,
        '                 is_chat_model=True)',
      ].join('\n'),
    },
  ];
}
/** Stands where the key goes; it is said that it must be replaced. */
export const KEY_PLACEHOLDER = 'YOUR_KEY';
