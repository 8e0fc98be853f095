// The libraries of the providers behind tract proxy, in the ways in which they keep a
// conversation. tract proxy run sets the base URLs.
import OpenAI from 'openai';
import Anthropic from '@anthropic-ai/sdk';
import { generateText, streamText, tool, stepCountIs } from 'ai';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { Agent, run, setDefaultOpenAIClient, setTracingDisabled, tool as agentTool } from '@openai/agents';
import { z } from 'zod';

const apiKey = process.env.TEST_KEY;
const openaiURL = process.env.OPENAI_BASE_URL, anthropicURL = process.env.ANTHROPIC_BASE_URL;
const openai = new OpenAI({ apiKey, baseURL: openaiURL });
const schema = { type: 'object', properties: { command: { type: 'string' } } };
const execute = ({ command }) => 'out of ' + command;

async function previousResponse() {
  const common = { model: 'gpt-x', store: true, reasoning: { effort: 'low' }, tools: [{ type: 'function', name: 'bash', parameters: schema, strict: false }] };
  let r = await openai.responses.create({ ...common, input: 'PLAN:list previous' });
  const call = r.output.find(item => item.type === 'function_call');
  r = await openai.responses.create({ ...common, previous_response_id: r.id, input: [{ type: 'function_call_output', call_id: call.call_id, output: 'a.txt' }] });
  await openai.responses.create({ ...common, previous_response_id: r.id, input: 'PLAN:hello and now' });
}

async function conversation() {
  for (const input of ['PLAN:hello conversation', 'PLAN:hello second']) {
    await openai.responses.create({ model: 'gpt-x', conversation: 'conv_0123456789', input });
  }
}

async function anthropicTools() {
  const client = new Anthropic({ apiKey, baseURL: anthropicURL });
  const messages = [{ role: 'user', content: 'PLAN:count anthropic' }];
  for (;;) {
    const r = await client.messages.stream({
      model: 'claude-x', max_tokens: 4000, thinking: { type: 'enabled', budget_tokens: 2000 }, messages, tools: [{ name: 'bash', input_schema: schema }],
    }).finalMessage();
    messages.push({ role: 'assistant', content: r.content });
    const calls = r.content.filter(block => block.type === 'tool_use');
    if (!calls.length) break;
    messages.push({ role: 'user', content: calls.map(call => ({ type: 'tool_result', tool_use_id: call.id, content: execute(call.input) })) });
  }
}

const tools = { bash: tool({ inputSchema: z.object({ command: z.string() }), execute }) };

async function aiAnthropic() {
  const model = createAnthropic({ apiKey, baseURL: anthropicURL + '/v1' })('claude-x');
  const r = streamText({ model, tools, stopWhen: stepCountIs(5), prompt: 'PLAN:count ai-anthropic', providerOptions: { anthropic: { thinking: { type: 'enabled', budgetTokens: 2000 } } } });
  await r.text;
}

async function aiOpenAI(name, options) {
  const model = createOpenAI({ apiKey, baseURL: openaiURL })('gpt-5');
  await generateText({ model, tools, stopWhen: stepCountIs(5), prompt: 'PLAN:count ' + name, providerOptions: { openai: { reasoningEffort: 'low', ...options } } });
}

async function agents() {
  setTracingDisabled(true);
  setDefaultOpenAIClient(openai);
  const bash = agentTool({ name: 'bash', description: 'Runs a command.', parameters: z.object({ command: z.string() }), execute });
  const helper = new Agent({ name: 'helper', model: 'gpt-x', instructions: 'You help.', tools: [bash] });
  const task = helper.asTool({ toolName: 'task', toolDescription: 'Asks a helper.', parameters: z.object({ prompt: z.string() }), inputBuilder: async ({ params }) => params.prompt });
  const boss = new Agent({ name: 'boss', model: 'gpt-x', instructions: 'You lead.', tools: [task] });
  await run(boss, 'PLAN:agent agents');
}

await previousResponse();
await conversation();
await anthropicTools();
await aiAnthropic();
await aiOpenAI('ai-openai', { store: false, include: ['reasoning.encrypted_content'] });
await aiOpenAI('ai-stored', {});
await agents();
console.log('all libraries have answered');
