# Serves the model folder that is mounted at /model. Build the wheel first: python -m build --wheel
FROM python:3.11-slim
RUN useradd --create-home --uid 10001 graphfcl
COPY dist/graphfcl-*.whl constraints.txt /tmp/
RUN wheel=$(ls /tmp/graphfcl-*.whl) \
    && { [ "$(echo "$wheel" | wc -l)" = 1 ] || { echo "dist/ must hold one wheel: remove the others" >&2; exit 1; }; } \
    && pip install --no-cache-dir --constraint /tmp/constraints.txt "${wheel}[serve]" \
    && rm -r /tmp/*
USER graphfcl
VOLUME ["/model", "/secrets"]
EXPOSE 8765
STOPSIGNAL SIGTERM
HEALTHCHECK CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8765/readyz', timeout=5)"]
ENTRYPOINT ["graphfcl", "serve", "--model", "/model", "--host", "0.0.0.0", "--token-file", "/secrets/token"]
