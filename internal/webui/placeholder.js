// Shows the number of received spans, and updates it.

const interval = 2000; // milliseconds

async function ask() {
  const response = await fetch('api/ui/v1/ingest', { headers: { 'X-Requested-With': 'XMLHttpRequest' } });
  if (response.status === 401) return { state: 'The number of received spans can be read with credentials only.' };
  if (!response.ok) return { state: 'The number of received spans is not available.' };
  const { data } = await response.json();
  if (!data.receives) return { state: 'This process answers queries. Other processes receive the spans.' };
  if (data.received > 0) return { received: data.received, state: '' };
  return { received: 0, state: 'Waiting for the first span. README.md shows how to send one.' };
}

async function update() {
  const { received, state } = await ask().catch(() => ({ state: 'The server does not answer.' }));
  document.getElementById('received').textContent = received === undefined ? '–' : received.toLocaleString('en');
  document.getElementById('unit').textContent = received === 1 ? 'span received' : 'spans received';
  const line = document.getElementById('state');
  if (line.textContent !== state) line.textContent = state;
  setTimeout(update, interval);
}

update();
