// In place of Swagger UI's `swagger-initializer.js`: the document as somebody in a browser needs it, and a filter.

// Swagger UI has dark colours, and a switch for them in a bar that this page does not have.
const dark = matchMedia('(prefers-color-scheme: dark)');
const setColors = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', setColors);
setColors();

// Lists an operation once, under its first tag. The filter finds it by the others as well.
const onceEach = (operation) => ({ ...operation, tags: operation.tags?.slice(0, 1), 'x-tags': operation.tags });

// A page cannot set the cookie of the session; the browser sends it by itself. So there is no field for it.
function withoutCookies(operation, cookies) {
  const security = operation.security?.map((any) => Object.entries(any).filter(([name]) => !cookies.has(name)))
    .filter((any, n) => any.length > 0 || Object.keys(operation.security[n]).length === 0)
    .map((any) => Object.fromEntries(any));
  const parameters = operation.parameters?.filter((parameter) => parameter.in !== 'cookie');
  return { ...operation, ...(security && { security }), ...(parameters && { parameters }) };
}

// Moves the days of examples, which are about April 2026, to next week: a deadline has to be in the future.
const DAY = 24 * 60 * 60 * 1000;
const days = Math.ceil((Date.now() - Date.UTC(2026, 3, 4)) / DAY) + 7;
function moved(example) {
  if (typeof example === 'string') {
    return example.replace(/\b(2026)([-/])(\d{2})\2(\d{2})/g, (_, year, separator, month, day) =>
      new Date(Date.UTC(year, month - 1, day) + days * DAY).toISOString().slice(0, 10).replaceAll('-', separator));
  }
  if (Array.isArray(example)) return example.map(moved);
  if (example === null || typeof example !== 'object') return example;
  return Object.fromEntries(Object.entries(example).map(([name, value]) => [name, moved(value)]));
}
function withExamples(operation) {
  const withMoved = (thing) => ('example' in thing ? { ...thing, example: moved(thing.example) } : thing);
  // A complete list may take seconds to show.
  const withLimit = (thing) => (thing.name === 'limit' ? { ...thing, example: 20 } : thing);
  const { parameters, requestBody } = operation;
  const content = Object.entries(requestBody?.content ?? {}).map(([type, media]) => [type, withMoved(media)]);
  return {
    ...operation,
    ...(parameters && { parameters: parameters.map(withMoved).map(withLimit) }),
    ...(requestBody && { requestBody: { ...requestBody, content: Object.fromEntries(content) } }),
  };
}

function forBrowsers(document) {
  const schemes = Object.entries(document.components.securitySchemes ?? {});
  const cookies = new Set(schemes.filter(([, scheme]) => scheme.in === 'cookie').map(([name]) => name));
  const shown = (operation) => withExamples(withoutCookies(onceEach(operation), cookies));
  const paths = Object.entries(document.paths).map(([path, item]) =>
    [path, Object.fromEntries(Object.entries(item).map(([method, operation]) => [method, shown(operation)]))]);
  const securitySchemes = Object.fromEntries(schemes.filter(([name]) => !cookies.has(name)));
  return {
    ...withoutCookies(document, cookies),
    // The page shows the document of its own server.
    servers: undefined,
    paths: Object.fromEntries(paths),
    components: { ...document.components, securitySchemes },
  };
}

// The filter looks at path, method, name, summary and tags; Swagger UI's own looks at tags alone.
const filter = () => ({
  fn: {
    opsFilter: (tagged, phrase) => {
      const wanted = phrase.toLowerCase();
      const fits = (one) => [one.get('path'), one.get('method'), one.getIn(['operation', 'operationId']),
        one.getIn(['operation', 'summary']), one.getIn(['operation', 'x-tags'])?.join(' ')].some((text) => text?.toLowerCase().includes(wanted));
      return tagged.map((group, tag) => (tag.toLowerCase().includes(wanted) ? group
        : group.set('operations', group.get('operations').filter(fits))))
        .filter((group) => group.get('operations').size > 0);
    },
  },
});

const components = () => ({
  wrapComponents: {
    // Swagger UI says that the document has no operations when the filter fits none.
    operations: (Original, { React }) => (props) => [
      React.createElement('h2', { key: 'heading' }, 'Operations'),
      props.specSelectors.taggedOperations().size === 0
        ? React.createElement('h3', { key: 'none' }, 'No operation fits the filter.')
        : React.createElement(Original, { ...props, key: 'operations' }),
    ],
    // The path of an operation is a link inside the button that opens the operation.
    OperationSummaryPath: (Original, { React }) => (props) => React.createElement(Original, {
      ...props, operationProps: props.operationProps.set('isDeepLinkingEnabled', false),
    }),
    // A padlock says that an operation needs a sign-in. Swagger UI also shows one where a sign-in is optional.
    OperationSummary: (Original, { React }) => (props) => {
      const isOptional = props.operationProps.get('security')?.some((any) => any.isEmpty());
      const operationProps = isOptional ? props.operationProps.delete('security') : props.operationProps;
      return React.createElement(Original, { ...props, operationProps });
    },
  },
});

// A sign-in returns to the operation that the page shows.
const signIn = document.querySelector('#sign-in');
const signInAddress = signIn?.href;
signIn?.addEventListener('click', () => {
  signIn.href = signInAddress.replace('%2Fdocs%2F', encodeURIComponent(`/docs/${location.hash}`));
});

const openApi = await (await fetch('/openapi.json')).json();

// The page has this element if the browser sent a credential, which may have ended.
const who = document.querySelector('#who');
if (who !== null) {
  const [path] = Object.entries(openApi.paths).find(([, item]) => item.get?.operationId === 'getMe');
  fetch(path).then(async (answer) => {
    if (!answer.ok) return;
    const me = await answer.json();
    who.textContent = `Signed in as ${me.displayName ?? me.name}`;
  });
}

window.ui = SwaggerUIBundle({
  spec: forBrowsers(openApi),
  dom_id: '#swagger-ui',
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [filter, components],
  layout: 'BaseLayout',
  deepLinking: true,
  filter: true,
  persistAuthorization: true,
  tryItOutEnabled: true,
  validatorUrl: 'none',
  withCredentials: true,
});

// What Swagger UI has no option for: what its filter says, names of fields, and what can be scrolled by keyboard.
function complete() {
  const each = (selector, change) => document.querySelectorAll(`#swagger-ui ${selector}`).forEach(change);
  each('.operation-filter-input', (field) => {
    field.placeholder = 'Filter by path, name or tag';
    field.ariaLabel = field.placeholder;
  });
  each('tr[data-param-name] :is(input, select, textarea)', (field) => {
    field.ariaLabel ??= field.closest('tr').dataset.paramName;
  });
  each('.opblock-section-request-body :is(input, select, textarea)', (field) => { field.ariaLabel ??= 'Request body'; });
  each('.highlight-code pre', (example) => {
    if (example.scrollWidth > example.clientWidth || example.scrollHeight > example.clientHeight) example.tabIndex = 0;
  });
  // Its rows are those of a table.
  each('table[role=region]', (table) => table.removeAttribute('role'));
}
let isPlanned = false;
new MutationObserver(() => {
  if (isPlanned) return;
  isPlanned = true;
  requestAnimationFrame(() => {
    isPlanned = false;
    complete();
  });
}).observe(document.body, { childList: true, subtree: true });
