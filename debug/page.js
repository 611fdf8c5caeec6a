// Shows times in the visitor's time zone, and replaces the parts of the page that are live
// whenever the server sends a new page. What a person types, has focus on, marks or has
// opened stays. Without it, the page is still right when it was loaded.
(() => {
	const forms = {date: {dateStyle: 'medium', timeStyle: 'medium'}, clock: {timeStyle: 'medium'}};
	const localize = root => {
		for (const time of root.querySelectorAll('time[data-as]')) {
			time.title = time.textContent;
			time.textContent = new Date(time.dateTime).toLocaleString([], forms[time.dataset.as]);
		}
	};
	localize(document);
	document.getElementById('zone').textContent = 'Times are those of ' + Intl.DateTimeFormat().resolvedOptions().timeZone + '.';
	const state = document.getElementById('live');
	if (!state) return;
	const keyOf = e => e.href || (e.form && e.form.action + e.textContent) || e.parentElement?.dataset.of;
	const show = event => {
		const page = new DOMParser().parseFromString(event.data, 'text/html');
		localize(page);
		for (const part of page.querySelectorAll('[data-live]')) {
			const old = document.getElementById(part.id), focus = document.activeElement, marked = getSelection();
			if (!old || !marked.isCollapsed && old.contains(marked.anchorNode)) continue;
			const open = new Set([...old.querySelectorAll('details[open]')].map(e => e.dataset.of));
			for (const e of part.querySelectorAll('details')) if (open.has(e.dataset.of)) e.open = true;
			if (old.innerHTML === part.innerHTML) continue;
			const key = old.contains(focus) && keyOf(focus);
			old.innerHTML = part.innerHTML;
			if (key) [...old.querySelectorAll('a, button, summary')].find(e => keyOf(e) === key)?.focus({preventScroll: true});
		}
		state.textContent = 'Live.';
	};
	let stream;
	const follow = () => {
		stream?.close();
		if (document.hidden) return;
		const at = new URL(location.href);
		at.searchParams.set('live', '1');
		stream = new EventSource(at);
		stream.onmessage = show;
		stream.onerror = () => {
			state.textContent = 'Not live: no connection.';
			if (stream.readyState === EventSource.CLOSED) setTimeout(follow, 10000);
		};
	};
	document.addEventListener('visibilitychange', follow);
	follow();
})();
