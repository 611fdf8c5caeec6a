// Replaces the parts of the page that are live, whenever the server sends a new page.
// What a person types, has focus on or marks stays. Without it, the page is still right
// when it was loaded.
(() => {
	const state = document.getElementById('live');
	const keyOf = e => e.href || (e.form && e.form.action + e.textContent);
	const show = event => {
		const page = new DOMParser().parseFromString(event.data, 'text/html');
		for (const part of page.querySelectorAll('[data-live]')) {
			const old = document.getElementById(part.id), focus = document.activeElement, marked = getSelection();
			if (!old || old.innerHTML === part.innerHTML || !marked.isCollapsed && old.contains(marked.anchorNode)) continue;
			const key = old.contains(focus) && keyOf(focus);
			old.innerHTML = part.innerHTML;
			if (key) [...old.querySelectorAll('a, button')].find(e => keyOf(e) === key)?.focus({preventScroll: true});
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
